"""Countries in groups: NormAd's 75 in eight clusters, CulturalBench's 45 in eleven regions.

NormAd's clusters are those of the Inglehart-Welzel cultural map, as the authors bin the countries
(Rao et al., section 4.1, note 5, after Inglehart and Welzel 2012); with their full set these bins
give table 2. CulturalBench's regions are those of appendix B, table 2 (Chiu et al.).
"""

from __future__ import annotations

import re
import unicodedata

_BINS = {
    "African-Islamic": (
        "afghanistan bangladesh egypt ethiopia iran iraq kenya lebanon mauritius pakistan "
        "palestinian_territories saudi_arabia somalia south_africa south_sudan sudan syria "
        "türkiye zimbabwe"
    ),
    "Catholic Europe": "austria croatia hungary italy poland portugal spain",
    "Confucian": "china hong_kong japan south_korea taiwan",
    "English Speaking": (
        "australia canada ireland new_zealand united_kingdom united_states_of_america"
    ),
    "Latin America": "argentina brazil chile colombia mexico peru venezuela",
    "Orthodox Europe": (
        "bosnia_and_herzegovina greece north_macedonia romania russia serbia ukraine"
    ),
    "Protestant Europe": "france germany malta netherlands sweden",
    "West and South Asia": (
        "cambodia cyprus fiji india indonesia israel laos malaysia myanmar nepal "
        "papua_new_guinea philippines samoa singapore sri_lanka thailand timor_leste tonga vietnam"
    ),
}
_CLUSTER_OF = {country: name for name, countries in _BINS.items() for country in countries.split()}
_OTHER_NAMES = {
    "turkey": "türkiye",
    "united_states": "united_states_of_america",
    "usa": "united_states_of_america",
    "uk": "united_kingdom",
}
_BETWEEN = re.compile(r"[\s_-]+")
_SMALL_WORDS = re.compile(r"\b(And|Of)\b")

CLUSTERS = tuple(_BINS)
"""The eight clusters, in the order of NormAd's table 2."""

COUNTRIES = tuple(sorted(_CLUSTER_OF))
"""The 75 countries, in lower case with underscores."""


def _folded(name: str) -> str:
    return _BETWEEN.sub("_", unicodedata.normalize("NFKC", name).strip().casefold())


_SPELLED = {_folded(name): name for name in CLUSTERS}


def cluster_of(country: str) -> str | None:
    """The country's cluster; None for a country that is not among the 75.

    Case, and whether blanks, hyphens or underscores stand between the words, do not matter.
    """
    folded = _folded(country)
    return _CLUSTER_OF.get(_OTHER_NAMES.get(folded, folded))


def cluster_name(written: str) -> str:
    """One of the eight clusters in the paper's spelling; any other name as it is written.

    The map's makers write `English-Speaking` and `West & South Asia`.
    """
    return _SPELLED.get(_folded(written.replace("&", " and ")), written)


def country_name(country: str) -> str:
    """A country as people write it, from the released form: `South Korea` from `south_korea`.

    A name with a capital in it stays as it is.
    """
    if country != country.lower():
        return country
    return _SMALL_WORDS.sub(lambda word: word[0].lower(), country.replace("_", " ").title())


_REGIONS = {
    "North America": ("Canada", "United States"),
    "South America": ("Argentina", "Brazil", "Chile", "Mexico", "Peru"),
    "East Europe": ("Czech Republic", "Poland", "Romania", "Ukraine", "Russia"),
    "South Europe": ("Spain", "Italy"),
    "West Europe": ("France", "Germany", "Netherlands", "United Kingdom"),
    "Africa": ("Egypt", "Morocco", "Nigeria", "South Africa", "Zimbabwe"),
    "Middle East/West Asia": ("Iran", "Israel", "Lebanon", "Saudi Arabia", "Turkey"),
    "South Asia": ("Bangladesh", "India", "Nepal", "Pakistan"),
    "Southeast Asia": (
        *("Indonesia", "Malaysia", "Philippines", "Singapore", "Thailand", "Vietnam"),
    ),
    "East Asia": ("China", "Hong Kong", "Japan", "South Korea", "Taiwan"),
    "Oceania": ("Australia", "New Zealand"),
}
_REGION_OF = {country.casefold(): region for region, names in _REGIONS.items() for country in names}

REGIONS = tuple(_REGIONS)
"""The eleven regions, in the order of tables 5 and 6 of the paper."""


def region_of(country: str) -> str | None:
    """The country's region, whatever its case; None for one that is not among the 45."""
    return _REGION_OF.get(country.strip().casefold())
