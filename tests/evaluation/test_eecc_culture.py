"""Cultural values: distances, missing values, files that are wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from judge.errors import UsageError
from judge.evaluation.eecc_culture import FILES, NOMINAL, culture, read_cultures, read_vectors

from .eecc_folder import HOFSTEDE
from .test_eecc_sources import RELEASED

NAN = float("nan")


def test_distances_by_hand() -> None:
    found = culture({"a": [0, 0, 0], "b": [3, 4, 0], "c": [1, NAN, NAN], "d": [NAN, 1, 1]})
    assert found.demonyms == ("a", "b", "c", "d")
    assert found.distances[0, 1] == 5
    # One of three dimensions: as if the other two differed as much.
    assert found.distances[0, 2] == pytest.approx(3**0.5)
    assert found.distances[1, 2] == pytest.approx((4 * 3) ** 0.5)
    assert np.isnan(found.distances[2, 3])
    assert (np.diag(found.distances) == 0).all()


def test_the_scripts_leave_missing_dimensions_out() -> None:
    vectors = {"a": [0.0, 0.0, 0.0], "c": [1.0, NAN, NAN]}
    assert culture(vectors, rule="released").distances[0, 1] == 1


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / FILES["Hofstede"]
    path.write_text(HOFSTEDE.replace("20,0", "#NULL!,0"), "utf-8")
    vectors = read_vectors(path)
    assert list(vectors) == ["Indian", "German", "Nigerian", "Arab"]
    assert vectors["Indian"] == [10, 0] and np.isnan(vectors["German"][0])
    assert list(read_cultures(tmp_path)) == ["Hofstede"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Demonym", "People", "csv:1: no column 'Demonym'"),
        ("20,0", "20", "csv:3: 4 cells, the header has 5"),
        ("20,0", "many,0", "csv:3: column 'pdi': 'many' is neither a number nor #NULL!"),
        ("20,0", "inf,0", "csv:3: column 'pdi': 'inf' is no finite number"),
        (",German,20", ",Indian,20", "csv:3: column 'Demonym': 'Indian' was there before"),
        (",German,20", ",,20", "csv:3: column 'Demonym': '' is empty"),
    ],
)
def test_a_file_that_is_wrong(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "values.csv"
    path.write_text(HOFSTEDE.replace(old, new, 1), "utf-8")
    with pytest.raises(UsageError, match=message):
        read_vectors(path)


def test_questions_without_an_order_are_left_out_of_the_wvs_only(tmp_path: Path) -> None:
    for file in FILES.values():
        (tmp_path / file).write_text(
            "ctr,country,Demonym,Q1,Q223\na,A,Aan,1,1000\nb,B,Ban,2,9000\n", "utf-8"
        )
    paper, released = read_cultures(tmp_path), read_cultures(tmp_path, rule="released")
    assert paper["WVS"].distances[0, 1] == 1
    assert paper["Hofstede"].distances[0, 1] > 7000 < released["WVS"].distances[0, 1]


def test_the_released_files() -> None:
    """94 countries with Hofstede's dimensions and 249 questions of the WVS, as in section 4.3.2."""
    if not RELEASED.is_dir():
        pytest.skip("the public data are not here")
    lines = (RELEASED / "identities.tsv").read_text("utf-8").splitlines()
    identities = {line.split("\t")[1] for line in lines}
    found = read_cultures(RELEASED)
    assert len(identities & set(found["Hofstede"].demonyms)) == 94
    assert len(identities & set(found["WVS"].demonyms)) == 58
    vectors = read_vectors(RELEASED / FILES["WVS"], without=NOMINAL)
    assert {len(values) for values in vectors.values()} == {249}
    # The party question alone goes beyond ten.
    assert np.nanmax(np.array(list(vectors.values()))) < 10
