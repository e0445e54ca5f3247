"""Names of countries: one for each, whatever its case, separators and common spelling."""

from __future__ import annotations

import re
import unicodedata

from judge.records.words import caseless

_SPELLINGS = {
    "bosnia_and_herzegovina": ("Bosnia", "Bosnia-Herzegovina"),
    "czech_republic": ("Czechia",),
    "laos": ("Lao PDR",),
    "myanmar": ("Burma",),
    "netherlands": ("Holland",),
    "north_macedonia": ("Macedonia",),
    "palestinian_territories": ("Palestine",),
    "russia": ("Russian Federation",),
    "south_korea": ("Korea", "Republic of Korea"),
    "syria": ("Syrian Arab Republic",),
    "timor_leste": ("East Timor",),
    "türkiye": ("Turkey", "Turkiye"),
    "united_kingdom": ("UK", "U.K.", "Britain", "Great Britain"),
    "united_states_of_america": ("United States", "America", "USA", "US", "U.S.", "U.S.A."),
    "vietnam": ("Viet Nam",),
}
"""The other names of countries that have them, by the name in NormAd's release."""

ALSO_WORDS = frozenset({"brazil", "chile", "china", "turkey", "us"})
"""Names that in lower case are words: fine china, told us."""

_INITIALS = frozenset({"uae", "uk", "us", "usa"})

_BETWEEN = re.compile(r"[\s_-]+")
_SMALL_WORDS = re.compile(r"\b(And|Of)\b")


def _folded(country: str) -> str:
    folded = _BETWEEN.sub("_", caseless(unicodedata.normalize("NFKC", country).strip()))
    return folded.removeprefix("the_").replace("_&_", "_and_")


_NAME_OF = {_folded(other): name for name, others in _SPELLINGS.items() for other in others}


def canonical(country: str) -> str:
    """`south_korea` for `Republic of Korea`: the released form, in lower case with underscores."""
    folded = _folded(country)
    return _NAME_OF.get(folded, folded)


def country_name(country: str) -> str:
    """`South Korea` for `south_korea`, the released form, and `US` for `us`; a name with a capital
    stays."""
    if country != country.lower():
        return country
    if country in _INITIALS:
        return country.upper()
    return _SMALL_WORDS.sub(lambda word: word[0].lower(), country.replace("_", " ").title())


def spellings(country: str) -> tuple[str, ...]:
    """The country's name as it is written out, and its other names."""
    name = canonical(country)
    return country_name(country), country_name(name), *_SPELLINGS.get(name, ())
