"""The 45 countries and territories of CulturalBench, by continent or part of one.

Source: Chiu et al., "CulturalBench", appendix B, table 2.
"""

from __future__ import annotations

_COUNTRIES = {
    "North America": ("Canada", "United States"),
    "South America": ("Argentina", "Brazil", "Chile", "Mexico", "Peru"),
    "East Europe": ("Czech Republic", "Poland", "Romania", "Ukraine", "Russia"),
    "South Europe": ("Spain", "Italy"),
    "West Europe": ("France", "Germany", "Netherlands", "United Kingdom"),
    "Africa": ("Egypt", "Morocco", "Nigeria", "South Africa", "Zimbabwe"),
    "Middle East/West Asia": ("Iran", "Israel", "Lebanon", "Saudi Arabia", "Turkey"),
    "South Asia": ("Bangladesh", "India", "Nepal", "Pakistan"),
    "Southeast Asia": (
        "Indonesia",
        "Malaysia",
        "Philippines",
        "Singapore",
        "Thailand",
        "Vietnam",
    ),
    "East Asia": ("China", "Hong Kong", "Japan", "South Korea", "Taiwan"),
    "Oceania": ("Australia", "New Zealand"),
}
_REGION_OF = {
    country.casefold(): region for region, names in _COUNTRIES.items() for country in names
}

REGIONS = tuple(_COUNTRIES)
"""The eleven regions, in the order of tables 5 and 6 of the paper."""


def region_of(country: str) -> str | None:
    """The country's region, whatever its case; None for one that is not among the 45."""
    return _REGION_OF.get(country.strip().casefold())
