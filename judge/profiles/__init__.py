"""Profiles: what calibration learnt about judges. The JSON files here come with the package."""

from judge.profiles.profile import (
    Bond,
    Data,
    Guarantee,
    JudgeProfile,
    Profile,
    Profiles,
    Rates,
    item_key,
    named,
    parse,
    shipped,
)

__all__ = [
    "Bond",
    "Data",
    "Guarantee",
    "JudgeProfile",
    "Profile",
    "Profiles",
    "Rates",
    "item_key",
    "named",
    "parse",
    "shipped",
]
