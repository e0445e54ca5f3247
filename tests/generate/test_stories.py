"""`judge generate stories`: CQ-Bench's sets (section 2.1) by a scripted writer with faults."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from judge.errors import UsageError
from judge.generate.generator import DraftOptions
from judge.papers.stories import drafts
from tests.cli.conftest import lines
from tests.cli.typed import Typed

OPTIONS = "1. Agree 2. Neither agree nor disagree 3. Disagree"
TOPICS = ("POLITICAL", "SOCIAL", "RELIGIOUS", "ETHICAL")
QUICK = ("--min-words", "20", "-q")


def value_file(typed: Typed, topics: Sequence[str] = TOPICS) -> None:
    typed.write(
        "values.jsonl",
        [
            {
                "topic": f"{topic} VALUES",
                "q_id": str(n),
                "q_content": f"Thing {n} of {topic.lower()} life is worth a day",
                "option": OPTIONS,
            }
            for topic in topics
            for n in range(8)
        ],
    )


# ---------------------------------------------------------------- the writer and its faults

STORY = "They met at the {{ location }}. " + "".join(
    f"'I think of point {n} at times,' somebody said. " for n in range(1, 21)
)


def for_each(part: str) -> str:
    """A reply with a part for each value of the story."""
    each = "{% for v in values %}{{ ',' if loop.index > 1 }}{" + part + "}{% endfor %}"
    return '{"values": [' + each + "]}"


CARRIED = (
    '"value": {{ loop.index }}, "quote": "I think of point {{ loop.index }} at times", '
    '"character": null, "reason": "so", "reflected": "yes"'
)
QUIET = '"value": {{ loop.index }}, "reason": "so", "speeches": []'
SOUND = [
    {"when": {"rubric": "story_writing"}, "reply": json.dumps({"story": STORY})},
    {"when": {"rubric": "incorporation"}, "reply": for_each(CARRIED)},
    {"when": {"rubric": "consistency"}, "reply": for_each(QUIET)},
    {"when": {"rubric": "implicitness"}, "reply": for_each(QUIET)},
]


def missing(draft: str, numbers: Sequence[int], of: int) -> Iterator[dict[str, Any]]:
    """A draft that does not carry these values, whatever is inserted."""
    parts = [
        {
            "value": n,
            "quote": None if n in numbers else f"I think of point {n} at times",
            "character": None,
            "reason": "so",
            "reflected": "no" if n in numbers else "yes",
        }
        for n in range(1, of + 1)
    ]
    yield {"when": {"id": draft, "rubric": "incorporation"}, "reply": {"values": parts}}
    insertions = [
        {"value": n, "after": "They met at the", "character": "%s", "dialogue": f"More of {n}."}
        for n in numbers
    ]
    text = json.dumps({"insertions": insertions}).replace("%s", "{{ characters[0] }}")
    yield {"when": {"id": draft, "rubric": "insertion"}, "reply": text}


def contradicted(draft: str, numbers: Sequence[int], of: int) -> Iterator[dict[str, Any]]:
    """A draft in which somebody speaks against these values, however it is rewritten."""
    said = {n: {"character": "%s", "quote": f"I think of point {n} at times"} for n in numbers}
    parts = [
        {"value": n, "reason": "so", "speeches": [said[n]] if n in numbers else []}
        for n in range(1, of + 1)
    ]
    text = json.dumps({"values": parts}).replace("%s", "{{ characters[0] }}")
    yield {"when": {"id": draft, "rubric": "consistency"}, "reply": text}
    rewrites = [
        {"passage": place, "text": f"I think of point {n} at times, and often"}
        for place, n in enumerate(numbers, 1)
    ]
    rewriting = {"id": draft, "rubric": "contradiction_rewriting"}
    yield {"when": rewriting, "reply": {"rewrites": rewrites}}


def faults(first: int, total: int, of: int, plant: Any) -> list[dict[str, Any]]:
    """As many faulty values as wanted, at most all but one of a draft, from this draft on."""
    entries: list[dict[str, Any]] = []
    while total:
        count = min(total, of - 1)
        entries += plant(f"stories-0-{first}", range(1, count + 1), of)
        first, total = first + 1, total - count
    return entries


def made(typed: Typed, setting: str, lost: int, against: int, of: int = 5) -> Counter[str]:
    """What `judge build` makes of stories of a setting: questions and values."""
    entries = faults(1, lost, of, missing)
    after = 1 + -(-lost // (of - 1))
    model = typed.script(
        "writer.yaml", [*entries, *faults(after, against, of, contradicted), *SOUND]
    )
    go = ("generate", "stories", "values.jsonl", "-m", model, "--judge-model", model)
    paper = ("--roles", "paper", "--option", *setting.split(), *QUICK, "--overwrite")
    done = typed(*go, "-o", "stories.jsonl", *paper)
    assert done.returncode == 0, done.stderr.decode()
    counts = Counter(stories=len(lines(typed.read("stories.jsonl"))))
    for name, field in (("attitude-detection", "questions"), ("value-selection", "values")):
        typed("build", name, "stories.jsonl", "values.jsonl", "-o", "built", "--overwrite", "-q")
        counts[field] = sum(len(line[field]) for line in lines(typed.read("built")))
    return counts


# Table 4 has more questions (425) than values (335) in the religious setting, which no run of the
# paper's procedure gives: the questions are asked of the values.
TABLE_4 = {
    "setting=category --option category=political": (100, 301, 402),
    "setting=category --option category=social": (100, 213, 285),
    "setting=category --option category=ethical": (100, 270, 351),
    "setting=random": (500, 1665, 2099),
}


@pytest.mark.parametrize(
    "setting", [pytest.param(name, marks=pytest.mark.slow) for name in TABLE_4]
)
def test_the_counts_of_table_4(typed: Typed, setting: str) -> None:
    stories, questions, values = TABLE_4[setting]
    value_file(typed)
    counts = made(
        typed,
        setting + ("" if stories == 500 else " --limit 100"),
        5 * stories - values,
        values - questions,
    )
    assert counts == {"stories": stories, "questions": questions, "values": values}


@pytest.mark.slow
def test_the_count_of_table_4_in_the_multiple_setting(typed: Typed) -> None:
    value_file(typed)
    counts = made(typed, "setting=multiple", 2000 - 1540, 0, of=20)
    assert (counts["stories"], counts["questions"]) == (100, 1540)


def test_faults_are_repaired_once_dropped_or_documented_and_the_rest_is_lost_by_stage(
    typed: Typed,
) -> None:
    value_file(typed)
    short = {
        "when": {"rubric": "story_writing", "id": "stories-0-4"},
        "reply": {"story": "Too short."},
    }
    script = [
        *missing("stories-0-1", (2, 3), 5),
        *contradicted("stories-0-2", (5,), 5),
        *missing("stories-0-3", (1, 2, 3, 4, 5), 5),
        short,
        *SOUND,
    ]
    model = typed.script("writer.yaml", script)
    go = ("generate", "stories", "values.jsonl", "-m", model, "--limit", "6", "-o", "s.jsonl")
    code, _, err = typed.text(*go, "--min-words", "20", "--summary", "sums.json", "--seed", "0")
    # Of the kept ones: the third lost five values more.
    assert code == 0 and "4 of 6 drafts kept; 9 edits, 2 values dropped" in err, err
    kept, lost = lines(typed.read("s.jsonl")), lines(typed.read("s.jsonl.discarded.jsonl"))
    assert [line["id"] for line in kept] == [f"stories-0-{n}" for n in (1, 2, 5, 6)]
    assert [(c["judge"]["generated"]["stage"], c["judge"]["generated"]["cause"]) for c in lost] == [
        ("incorporation", "fail"),
        ("length", "too short"),
    ]
    first, second = kept[0], kept[1]
    assert (len(first["values"]), len(first["judge"]["dropped"])) == (3, 2)
    assert first["judge"]["verdict"] == "pass"
    # Three rounds by default, and the fourth ask goes on.
    assert [c["round"] for c in first["judge"]["checks"] if c["by"] == "loop"][:4] == [1, 2, 3, 4]
    against = second["judge"]["contradictions"]
    assert [(c["character"], c["quote"]) for c in against] == [
        (second["characters"][0], "I think of point 5 at times")
    ]
    assert second["judge"]["edits"][0]["check"] == "consistency"
    funnel = json.loads(typed.read("sums.json"))["funnel"]["stages"]
    assert [(s["stage"], s["in"], s["out"]) for s in funnel] == [
        ("story_writing", 6, 6),
        ("length", 6, 5),
        ("implicitness", 5, 5),
        ("incorporation", 5, 4),
        ("similarity", 4, 4),
    ]


def test_a_person_decides_about_the_one_value_on_which_votes_are_split(typed: Typed) -> None:
    value_file(typed)
    (no, *_), (yes, *insertions) = (missing("stories-0-1", range(1, n), 5) for n in (6, 5))
    silent = {"finish_reason": "refusal", "text": "No."}
    votes = [{**entry, "when": {**yes["when"], "vote": n}} for n, entry in ((1, no), (2, silent))]
    model = typed.script("writer.yaml", [*votes, yes, *insertions, *SOUND])
    go = ("generate", "stories", "values.jsonl", "-m", model, "--limit", "1", "-o", "s.jsonl")
    assert typed(*go, *QUICK, "--review", "mine.jsonl").returncode == 3, "a vote is lost"
    (line,) = lines(typed.read("mine.jsonl"))
    came = line["judge"]["generated"]
    assert (came["stage"], came["cause"], len(line["values"])) == ("incorporation", "abstain", 1)
    typed.write("mine.jsonl", [{**line, "labels": {"incorporation": ["yes"]}}])
    assert typed(*go, *QUICK, "--resume", "--decisions", "mine.jsonl").returncode == 0
    (kept,) = lines(typed.read("s.jsonl"))
    assert kept["values"] == line["values"] and not typed.read("s.jsonl.discarded.jsonl")


def test_a_writer_that_gives_up_loses_its_draft_alone(typed: Typed) -> None:
    value_file(typed)
    cut = {"when": {"id": "stories-0-1"}, "finish_reason": "length", "text": '{"story": "They m'}
    typed.script("w.yaml", [cut, *SOUND])
    words = ("generate", "stories", "values.jsonl", "-m", "scripted:w.yaml", "--limit", "2")
    code, _, err = typed.text(*words, "-o", "s.jsonl", *QUICK[:2])
    assert code == 0 and "truncated: --max-tokens N lets the writer write more" in err, err
    (kept,), (left,) = (lines(typed.read(f"s.jsonl{end}")) for end in ("", ".discarded.jsonl"))
    assert kept["id"] == "stories-0-2" and left["id"] == "stories-0-1"
    told = left["judge"]
    assert (told["verdict"], told["generated"]["stage"]) == ("fail", "story_writing")
    assert "story_writing gave up: truncated" in told["reason"] and "story" not in left


def test_roles_of_the_paper_give_each_step_its_model(typed: Typed) -> None:
    value_file(typed)
    writer, judge = typed.script("mini.yaml", SOUND), typed.script("big.yaml", SOUND)
    go = ("generate", "stories", "values.jsonl", "-m", writer, "--judge-model", judge)
    assert typed(*go, "--roles", "paper", "--limit", "1", "-o", "s.jsonl", *QUICK).returncode == 0
    story = lines(typed.read("s.jsonl"))[0]
    models = {
        (c["check"], v["model"]) for c in story["judge"]["checks"] for v in c.get("votes", ())
    }
    assert models == {("incorporation", judge), ("consistency", judge), ("implicitness", writer)}
    run = json.loads(typed.read("s.jsonl.run.json"))[story["judge"]["fingerprint"]]
    assert run["steps"]["contradiction_rewriting"]["model"] == judge
    taken = [run["settings"][n] for n in ("rounds", "one_pass", "temperature", "vote_temperature")]
    assert (run["rewrite"], taken) == (writer, [1, True, 1.0, 1.0])
    assert typed(*go, "--roles", "paper", "--rounds", "2", "--temperature", "0", "--limit", "1",
                 "-o", "t.jsonl", *QUICK).returncode == 0  # fmt: skip
    (run,) = json.loads(typed.read("t.jsonl.run.json")).values()
    assert (run["settings"]["rounds"], run["settings"]["temperature"]) == (2, 0.0)
    assert story["lineage"]["model"] == writer
    listed = " ".join(typed.text("generate", "--list")[1].split())
    assert "openai:gpt-4o judges, rounds = 1, one_pass = true, temperature = 1.0" in listed
    code, _, err = typed.text(*go, "--step", "nothing=x:y")
    assert code == 2 and "--step nothing: stories has story_writing, insertion" in err


# ---------------------------------------------------------------- what is drawn


def drawn(typed: Typed, **own: str) -> list[dict[str, Any]]:
    limit = int(own.pop("limit", 40))
    value_file(typed)
    options = DraftOptions(seed=3, limit=limit, own=own)
    return [draft.fields for draft in drafts(["values.jsonl"], options)]


def test_five_different_statements_a_location_and_four_or_five_people(typed: Typed) -> None:
    stories = drawn(typed)
    assert all(len({v.rpartition("--")[0] for v in story["values"]}) == 5 for story in stories)
    assert {len(story["characters"]) for story in stories} == {4, 5}
    assert len({story["location"] for story in stories}) == 7
    assert stories == drawn(typed) and stories != drawn(typed, locations="ferry")


def test_a_category_may_be_spelt_as_in_the_value_file(typed: Typed) -> None:
    stories = drawn(typed, setting="category", category="SOCIAL VALUES,Ethical", limit="4")
    assert [story["setting"] for story in stories] == ["social", "ethical"] * 2
    assert all(story["setting"] in value for story in stories for value in story["values"])


def test_the_columns_of_a_value_file_may_be_renamed(typed: Typed) -> None:
    plain = drawn(typed, limit="3")
    text = typed.read("values.jsonl").replace(b'"q_content"', b'"frage"')
    (typed.folder / "values.jsonl").write_bytes(text)
    options = DraftOptions(seed=3, limit=3, columns={"q_content": "frage", "id": "nr"})
    assert [draft.fields for draft in drafts(["values.jsonl"], options)] == plain


def test_four_characters_have_an_attitude_each_to_the_same_five_statements(typed: Typed) -> None:
    story = drawn(typed, setting="multiple", limit="1", names="عمر,ليلى,小明,Zoë,Ana")[0]
    assert len(story["values"]) == 20 and len(story["characters"]) == 4
    statements = Counter(v.partition(":")[2].rpartition("--")[0] for v in story["values"])
    assert [*statements.values()] == [4] * 5
    attitudes = {v.rpartition("--")[2] for v in story["values"][:4]}
    assert attitudes == {"Agree", "Neither agree nor disagree", "Disagree"}


def test_stories_differ_in_their_values_whoever_holds_them_and_however_they_are_worded(
    typed: Typed,
) -> None:
    """Two statements each have the same end, after a colon; with two options four characters
    hold the same attitudes to a statement, whichever way round."""
    ends = ("Family", "Friends", "Leisure", "Work", "Faith")
    texts = [f"Important in {place}: {end}" for place in ("life", "a job") for end in ends]
    values = [{"topic": "T", "q_id": str(n), "q_content": t} for n, t in enumerate(texts)]
    typed.write("ten.jsonl", [{**value, "option": "1. Yes"} for value in values])
    typed.write("five.jsonl", [{**value, "option": "1. Yes 2. No"} for value in values[:5]])
    own = {"locations": "ferry"}
    # 10! / (5! 5!) = 252 sets of five values.
    assert len([*drafts(["ten.jsonl"], DraftOptions(limit=240, own=own))]) == 240
    several = DraftOptions(limit=2, own={**own, "setting": "multiple"})
    with pytest.raises(UsageError, match="no more than 1 different stories in multiple"):
        [*drafts(["five.jsonl"], several)]


@pytest.mark.slow
def test_categories_take_turns_and_no_story_is_drawn_twice(typed: Typed) -> None:
    stories = drawn(typed, setting="category", limit="8")
    assert [story["setting"] for story in stories[:4]] == [t.lower() for t in TOPICS]
    value_file(typed, TOPICS[:1])
    few = DraftOptions(limit=20_000, own={"locations": "ferry"})
    with pytest.raises(UsageError, match="no more than"):
        for _ in drafts(["values.jsonl"], few):
            pass
