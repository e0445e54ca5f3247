"""Profiles: what calibration learnt about judges. The JSON files here come with the package."""

from judge.profiles.profile import Bond, Data, Guarantee, JudgeProfile, Profile, Rates, item_key
from judge.profiles.shelf import Profiles, named, shipped

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
    "shipped",
]
