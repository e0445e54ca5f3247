"""NormAd's countries in their clusters, and CulturalBench's in their regions."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest

from judge.evaluation.clusters import CLUSTERS, COUNTRIES, cluster_name, cluster_of, country_name
from judge.evaluation.regions import REGIONS, region_of

from .examinee import public


def test_there_are_75_countries_in_eight_clusters() -> None:
    assert len(COUNTRIES) == len(set(COUNTRIES)) == 75
    sizes = Counter(cluster_of(country) for country in COUNTRIES)
    assert tuple(sizes) and set(sizes) == set(CLUSTERS) and len(CLUSTERS) == 8
    assert sizes["West and South Asia"] == 19 and sizes["Confucian"] == 5


def test_clusters_are_the_authors() -> None:
    with Path(public("normad/iw_clusters.csv")).open(encoding="utf-8", newline="") as file:
        theirs = {row["country"]: row["cluster"] for row in csv.DictReader(file)}
    assert {country: cluster_of(country) for country in theirs} == theirs
    assert len(theirs) == len(COUNTRIES)


@pytest.mark.parametrize(
    ("written", "cluster"),
    [
        ("South Korea", "Confucian"),
        (" timor-leste ", "West and South Asia"),
        ("Timor_Leste", "West and South Asia"),
        ("TÜRKIYE", "African-Islamic"),
        ("Tu\u0308rkiye", "African-Islamic"),
        ("Turkey", "African-Islamic"),
        ("USA", "English Speaking"),
        ("atlantis", None),
        ("", None),
    ],
)
def test_spelling_does_not_matter(written: str, cluster: str | None) -> None:
    assert cluster_of(written) == cluster


@pytest.mark.parametrize(
    ("released", "name"),
    [
        ("egypt", "Egypt"),
        ("bosnia_and_herzegovina", "Bosnia and Herzegovina"),
        ("united_states_of_america", "United States of America"),
        ("timor-leste", "Timor-Leste"),
        ("Republic of Korea", "Republic of Korea"),
    ],
)
def test_countries_are_named_as_people_write_them(released: str, name: str) -> None:
    assert country_name(released) == name


# The paper's appendix B; its South America says 150 over countries that add up to 151.
QUESTIONS = {
    "North America": 27,
    "South America": 150,
    "East Europe": 115,
    "South Europe": 76,
    "West Europe": 96,
    "Africa": 134,
    "Middle East/West Asia": 127,
    "South Asia": 106,
    "Southeast Asia": 159,
    "East Asia": 211,
    "Oceania": 26,
}


def test_regions_have_the_papers_numbers_of_questions() -> None:
    path = Path(public("culturalbench/CulturalBench-Easy.csv"))
    with path.open(encoding="utf-8", newline="") as file:
        found = Counter(region_of(row["country"]) for row in csv.DictReader(file))
    assert found == QUESTIONS
    assert tuple(QUESTIONS) == REGIONS


def test_a_country_outside_the_45_has_no_region() -> None:
    assert region_of("Fiji") is None
    assert region_of(" south korea") == "East Asia"


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("English-Speaking", "English Speaking"),
        ("West & South Asia", "West and South Asia"),
        ("west and  south asia", "West and South Asia"),
        ("African-Islamic", "African-Islamic"),
        ("Island", "Island"),
    ],
)
def test_a_cluster_has_one_name_however_it_is_written(written: str, name: str) -> None:
    assert cluster_name(written) == name
