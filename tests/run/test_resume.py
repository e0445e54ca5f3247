"""`--resume`: whatever an earlier run left, the result equals that of an undisturbed run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import judge.rubrics
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.configuration import resolve
from judge.errors import Exit, Unavailable, UsageError
from judge.records import content_hash
from judge.records.lines import Line
from judge.run.description import description_file
from judge.run.job import Job
from judge.run.panels import Resources
from judge.run.report import Report
from judge.run.resume import unmatched_file
from judge.run.task import Watcher
from judge.run.validate import validate

POOL = [
    {
        "id": f"n{i}",
        "rule_of_thumb": "Greet.",
        "story": f"Ann greets Bo {i}. ünï\u2028",
        "label": "yes",
    }
    for i in range(6)
]
POOL.append({"rule_of_thumb": "Greet.", "story": "without an id", "label": "yes"})
POOL.append({"nothing": "to judge"})
FOREIGN = [
    b"not json\n",
    b"[]\n",
    b"\xff\xfe\n",
    b'{"judge": {"verdict": ["pass"]}}\n',
    b'{"judge": {"verdict": "pass", "original": 3}}\n',
    b"[" * 5000 + b"\n",
    b"9" * 5000 + b"\n",
]


class Told(Watcher):
    said = ""

    def say(self, message: str) -> None:
        self.said += message


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    folder = tmp_path_factory.mktemp("room")
    before = Path.cwd()
    os.chdir(folder)
    yield Room(folder)
    os.chdir(before)


class Room:
    """A folder with a scripted judge; runs without a cache, so that what is kept is seen."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.out = folder / "out.jsonl"
        self.watcher = Told()
        (folder / "yes.yaml").write_text(
            "method: logprobs\nreplies:\n"
            "- {when: {id: n3}, error: server-fault, times: 1}\n"
            "- {when: {id: n4}, p_yes: 0.2}\n- {p_yes: 0.9}\n"
        )
        (folder / "other.yaml").write_text("method: logprobs\nreplies:\n- {p_yes: 0.7}\n")

    def write(self, records: list[dict[str, Any]]) -> None:
        (self.folder / "in.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))

    def run(self, out: Path, *, resume: bool, **flags: Any) -> Report:
        more = {name: flags.pop(name) for name in ("rejudge", "limit", "sample") if name in flags}
        job = Job(["in.jsonl"], out=out, resume=resume, overwrite=not resume, **more)
        chosen = {"model": ["scripted:yes.yaml"], "check": ["relevance"]} | flags
        self.watcher = Told()
        return validate(job, resolve({"cache": False, **chosen}), self.watcher)

    def undisturbed(self, records: list[dict[str, Any]]) -> bytes:
        self.write(records)
        self.run(self.folder / "whole.jsonl", resume=False)
        return (self.folder / "whole.jsonl").read_bytes()

    def put(self, out: bytes) -> None:
        """OUT with this content, described as the last undisturbed run is, and nothing beside."""
        self.out.write_bytes(out)
        unmatched_file(self.out).unlink(missing_ok=True)
        whole = description_file(self.folder / "whole.jsonl")
        if whole.exists():
            description_file(self.out).write_bytes(whole.read_bytes())

    def resumed(self, out: bytes, **flags: Any) -> tuple[bytes, Report]:
        """OUT's content after resuming from this content."""
        self.put(out)
        report = self.run(self.out, resume=True, **flags)
        self.check_that_nothing_is_lost(out, report)
        return self.out.read_bytes(), report

    def check_that_nothing_is_lost(self, before: bytes, report: Report) -> None:
        """Finished lines without a record in OUT are in a file beside it; no other lines are."""
        found = [Line.parse(line) for line in self.out.read_bytes().splitlines(keepends=True)]
        stands = [line.key for line in found if line and line.finished]
        wanted = []
        for line in before.splitlines(keepends=True):
            one = Line.parse(line) if line.endswith(b"\n") else None
            if one and one.key in stands:
                stands.remove(one.key)
            elif one and one.finished:
                wanted.append(line)
        side = unmatched_file(self.out)
        assert side.exists() == bool(wanted)
        left = side.read_bytes().splitlines(keepends=True) if wanted else []
        assert sorted(left) == sorted(wanted)
        assert report.unmatched == len(wanted)


@contextmanager
def no_backoff() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("judge.judging.transport.MAX_TRIES", 1)
        yield


records_of = st.lists(st.sampled_from(range(len(POOL))), max_size=9).filter(
    lambda numbers: {*numbers} != {len(POOL) - 1} and numbers.count(3) <= 1
)
"""Where no record is of a kind that a workflow knows, nothing is judged at all. The script fails on
n3 the first time that it is asked: of two, which one fails is a matter of their order."""


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(data=st.data(), numbers=records_of, shuffled=st.randoms())
def test_any_lines_any_cut(
    room: Room, data: st.DataObject, numbers: list[int], shuffled: Any
) -> None:
    with no_backoff():
        # An earlier run over other records in another order, cut anywhere.
        before = data.draw(records_of)
        old = room.undisturbed([POOL[i] for i in before]).splitlines(keepends=True)
        shuffled.shuffle(old)
        content = b"".join(old)
        end = len(content) if data.draw(st.booleans()) else data.draw(st.integers(0, len(content)))

        records = [POOL[i] for i in numbers]
        wanted = room.undisturbed(records)
        found, report = room.resumed(content[:end])
    assert report.finished and report.summary.records == len(records)
    assert found == wanted


def test_a_kept_line_has_the_name_that_its_record_has_now(room: Room) -> None:
    """By hand: without an id, and where an id came before, a record is named by its place."""
    nameless, twin = POOL[6], POOL[0]
    old = room.undisturbed([nameless, twin, twin])
    names = [json.loads(line)["judge"].get("name") for line in old.splitlines()]
    assert names == ["in.jsonl:1", None, "in.jsonl:3"]
    wanted = room.undisturbed([twin, nameless])
    found, report = room.resumed(old)
    assert found == wanted and b'"name":"in.jsonl:2"' in found.replace(b'": "', b'":"')
    assert report.traffic["scripted:yes.yaml"]["calls"] == 0 and report.unmatched == 1
    assert report.summary.records == report.summary.resumed == 2


def test_only_what_changed_is_judged_again(room: Room) -> None:
    records = [dict(POOL[i]) for i in (0, 1, 2, 5)]
    old = room.undisturbed(records)
    records[1]["story"] += " And smiles."
    records.insert(3, dict(POOL[4]))
    wanted = room.undisturbed(records)
    found, report = room.resumed(old)
    assert found == wanted and report.summary.resumed == 3
    calls = report.traffic["scripted:yes.yaml"]["calls"]
    assert calls == 2
    # An input that became shorter gives a shorter output.
    room.write(records[:1])
    assert room.resumed(old)[0] == old.splitlines(keepends=True)[0]


def test_a_repaired_line_belongs_to_the_record_as_it_came_in() -> None:
    judgement = {"verdict": "pass", "fingerprint": "f", "original": {"story": "Old."}}
    line = Line.parse(json.dumps({"id": 1, "story": "New.", "judge": judgement}).encode())
    assert line is not None and line.key == content_hash({"id": 1, "story": "Old."})


def test_the_rubric_of_a_rewriter_is_in_the_fingerprint(room: Room) -> None:
    text = (Path(judge.rubrics.__path__[0]) / "story_regeneration.yaml").read_text("utf-8")
    own = room.folder / "regeneration.yaml"
    changed = text.replace("max_tokens: ", "max_tokens: 1", 1)
    assert changed != text
    own.write_text(changed, "utf-8")
    marks = [
        Resources.of(resolve({"model": ["scripted:yes.yaml"], "rubric": rubric})).bound("norm")
        for rubric in ([], [str(own)])
    ]
    assert marks[0].fingerprint != marks[1].fingerprint


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        ({"repair": True}, "settings.repair was False, is True; settings.rounds was 0, is 3"),
        ({"rubric": ["./mine"]}, "rubrics.relevance was"),
    ],
)
def test_another_fingerprint_is_refused(room: Room, flags: dict[str, Any], named: str) -> None:
    folder = room.folder / "mine"
    if not folder.exists():
        folder.mkdir()
        text = (Path(judge.rubrics.__path__[0]) / "relevance.yaml").read_text("utf-8")
        (folder / "relevance.yaml").write_text(text.replace("Answer Yes", "Say Yes"), "utf-8")
    old = room.undisturbed(POOL[:2])
    room.put(old)
    with pytest.raises(UsageError) as refused:
        room.run(room.out, resume=True, **flags)
    assert named in str(refused.value) and "--overwrite" in str(refused.value)
    assert room.out.read_bytes() == old, "nothing was touched"


def test_another_script_behind_the_same_name_is_refused(room: Room) -> None:
    old = room.undisturbed(POOL[:2])
    room.put(old)
    script = room.folder / "yes.yaml"
    text = script.read_text()
    try:
        script.write_text(text + "- {p_yes: 0.3}\n")
        what = r"What differs: script of scripted:yes.yaml was '\w+', is '\w+'\. "
        with pytest.raises(UsageError, match=what):
            room.run(room.out, resume=True)
    finally:
        script.write_text(text)


@pytest.mark.parametrize("mine", FOREIGN)
def test_a_line_that_judge_did_not_write_is_refused_by_its_number(room: Room, mine: bytes) -> None:
    first, second = room.undisturbed(POOL[:2]).splitlines(keepends=True)
    for number, content in ((1, mine), (1, mine[:-1]), (2, first + mine + second)):
        if content == mine[:-1] and content.startswith(b"{"):
            continue
        room.put(content)
        with pytest.raises(UsageError, match=f"line {number} was not written by judge"):
            room.run(room.out, resume=True)
        assert room.out.read_bytes() == content


def test_an_abstention_whose_votes_cannot_be_read_is_judged_again(room: Room) -> None:
    whole = room.undisturbed(POOL[:2])
    first, second = map(json.loads, whole.splitlines())
    for part in (first["judge"], *first["judge"]["checks"]):
        part["verdict"] = "abstain"
    first["judge"]["checks"][0]["votes"][0]["verdict"] = "perhaps"
    found, report = room.resumed(
        b"".join(json.dumps(line).encode() + b"\n" for line in (first, second))
    )
    assert found.splitlines()[0] == whole.splitlines()[0] and report.summary.resumed == 1


def test_a_kill_while_out_is_put_in_order_loses_nothing(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = room.undisturbed([POOL[i] for i in (0, 1, 2, 5)])
    reordered = b"".join(whole.splitlines(keepends=True)[::-1])

    def killed(*_: object) -> None:
        raise RuntimeError("killed")

    for step in ("os.fsync", "pathlib.Path.replace", "shutil.copymode"):
        room.put(reordered)
        with monkeypatch.context() as patch:
            patch.setattr(step, killed)
            with pytest.raises(RuntimeError, match="killed"):
                room.run(room.out, resume=True)
        report = room.run(room.out, resume=True)
        assert room.out.read_bytes() == whole, step
        assert report.summary.resumed == 4, f"a finished line was lost in {step}"
    leftovers = {path.name for path in room.folder.glob("out.jsonl*")}
    assert leftovers == {"out.jsonl", "out.jsonl.run.json"}


@pytest.mark.parametrize("step", ["os.fsync", "pathlib.Path.replace"])
def test_a_kill_while_lines_leave_out_doubles_none(
    room: Room, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    twice = room.undisturbed([POOL[1], POOL[1], POOL[0]]).splitlines(keepends=True)[:2]
    whole = room.undisturbed([POOL[0], POOL[2]])
    room.put(b"".join(twice) + whole)

    def killed(*_: object) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(step, killed)
        with pytest.raises(RuntimeError, match="killed"):
            room.run(room.out, resume=True)
    aside = unmatched_file(room.out)
    if step == "os.fsync":
        aside.write_bytes(aside.read_bytes()[:-9])
    report = room.run(room.out, resume=True)
    assert room.out.read_bytes() == whole and report.unmatched == 2
    assert aside.read_bytes() == b"".join(twice)


def test_an_out_that_cannot_be_put_in_order_ends_the_run_with_the_reason(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = room.undisturbed(POOL[:2])

    def full(*_: object, **__: object) -> int:
        raise Unavailable("the disk is full")

    room.put(whole)
    monkeypatch.setattr("judge.run.resume.Resumption.settle", full)
    report = room.run(room.out, resume=True, rejudge=("pass",), model=["scripted:other.yaml"])
    assert str(report.fatal) == "the disk is full"
    assert report.exit_code == Exit.UNAVAILABLE


def test_a_line_that_a_kill_left_beside_its_replacement_is_put_nowhere(room: Room) -> None:
    whole = room.undisturbed([POOL[4], POOL[0]])
    room.put(whole + whole.splitlines(keepends=True)[0])
    report = room.run(room.out, resume=True, rejudge=("fail",))
    assert report.unmatched == 0 and room.out.read_bytes() == whole
    assert not unmatched_file(room.out).exists()


@pytest.mark.parametrize("cut", [{"limit": 1}, {"sample": 1, "limit": 3}])
def test_lines_that_a_limit_or_a_sample_hides_stay_in_out(room: Room, cut: dict[str, int]) -> None:
    whole = room.undisturbed([POOL[0], POOL[1], POOL[4]])
    room.put(whole)
    report = room.run(room.out, resume=True, **cut)
    assert (report.summary.records, report.unmatched, room.watcher.said) == (1, 0, "")
    assert sorted(room.out.read_bytes().splitlines()) == sorted(whole.splitlines())
    # An input that ends before the limit is whole: of its other lines no record is left.
    room.write([POOL[0], POOL[1]])
    found, report = room.resumed(whole, limit=3)
    assert report.unmatched == 1 and found.splitlines() == whole.splitlines()[:2]


def test_lines_that_a_stopped_run_did_not_reach_stay_in_out(room: Room) -> None:
    whole = room.undisturbed([POOL[0], POOL[1]])
    room.write([POOL[4], POOL[5], POOL[0], POOL[1]])
    found, report = room.resumed(whole, max_calls=1)
    assert (report.finished, report.unmatched) == (False, 0)
    assert found.endswith(whole) and len(found.splitlines()) == 3


def test_rejudge_judges_the_named_verdicts_again_by_another_model(room: Room) -> None:
    records = [POOL[i] for i in (0, 4, 5)]
    old = room.undisturbed(records)
    found, report = room.resumed(old, rejudge=("fail",), model=["scripted:other.yaml"])
    before, after = (list(map(json.loads, text.splitlines())) for text in (old, found))
    assert [line["judge"]["verdict"] for line in before] == ["pass", "fail", "pass"]
    assert [line["judge"]["verdict"] for line in after] == ["pass"] * 3
    assert report.summary.resumed == 2 and [after[0], after[2]] == [before[0], before[2]]
    known = json.loads(description_file(room.out).read_bytes())
    models = [known[line["judge"]["fingerprint"]]["judge"] for line in after]
    assert models == [["scripted:yes.yaml"], ["scripted:other.yaml"], ["scripted:yes.yaml"]]
    # What is to be redone and finds no record is kept, too.
    room.write(records[:1])
    _, report = room.resumed(old, rejudge=("fail",), model=["scripted:other.yaml"])
    assert report.unmatched == 2
