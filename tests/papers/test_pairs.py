"""`judge generate pairs`: CALI's premises and hypotheses, with planted faults."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from judge.papers import pairs
from tests.cli.conftest import lines
from tests.cli.typed import Typed

NORM = {"behaviour": "leaving a tip", "location": "in a restaurant", "cluster": "tipping"}
BARE = {"quote": None}
GO = ("generate", "pairs", "norms.jsonl", "-m", "scripted:writer.yaml", "-o", "o.jsonl")


def fault(answer: str, reason: str = "-") -> dict[str, Any]:
    return {"reason": reason, "answer": answer, **BARE}


def said(rubric: str, reply: Any, **when: Any) -> dict[str, Any]:
    return {"when": {"rubric": rubric, **when}, "reply": reply}


THREE = ("They want to please.", "They were served before.", "They will come again.")


def three(*texts: str) -> dict[str, str]:
    return {f"hypothesis_{number}": text for number, text in enumerate(texts or THREE, 1)}


REST = [
    said("premise_writing", {"premise": "Two coins lay under the plate when they left."}),
    said("premise_fault", fault("sound")),
    said("hypothesis_writing", three()),
    said("hypothesis_indicators", {"reason": "-", "answer": "no", **BARE}),
]


def lost(typed: Typed) -> list[tuple[str, str]]:
    told = (one["judge"]["generated"] for one in lines(typed.read("o.jsonl.discarded.jsonl")))
    return [(one["stage"], one["cause"]) for one in told]


@pytest.mark.slow
def test_a_behaviour_gets_two_premises_with_opposite_judgements_and_three_inferences(
    typed: Typed,
) -> None:
    typed.write("norms.jsonl", [{"id": f"n{n}", **NORM} for n in range(60)])
    typed.script("writer.yaml", REST)
    assert typed(*GO).returncode == 0
    kept = lines(typed.read("o.jsonl"))
    assert len(kept) == 120 and {one["judge"]["verdict"] for one in kept} == {"pass"}
    for first, second in zip(kept[::2], kept[1::2], strict=True):
        assert first["lineage"]["parent"] == second["lineage"]["parent"]
        assert first["premise_template"] != second["premise_template"]
        assert first["judgement"] in ("normal", "expected")
        assert second["judgement"] in ("unexpected", "taboo")
    assert {one["premise_template"] for one in kept} == {1, 2, 3, 4, 5}
    types = Counter(kind for one in kept for kind in one["inference"])
    assert types["goal"] == 120 and len(types) == 9
    # Eleven templates: two of a goal, nine others.
    tasks = {task.partition(" ")[2] for one in kept for task in one["hypothesis_tasks"].split("\n")}
    assert len(tasks) == 11
    whole = typed.read("o.jsonl")
    assert typed(*GO, "--overwrite").returncode == 0 and typed.read("o.jsonl") == whole
    typed(*GO, "--overwrite", "--seed", "1")
    assert [one["inference"] for one in lines(typed.read("o.jsonl"))] != [
        one["inference"] for one in kept
    ]


def test_a_copy_of_the_prompts_example_is_lost(typed: Typed) -> None:
    """As the smallest models write; case and marks do not make it another text."""
    typed.write("norms.jsonl", [NORM])
    copy = "the guest left two wet prints on the step, and came in on socks"
    typed.script("writer.yaml", [said("premise_writing", {"premise": copy})])
    assert typed(*GO).returncode == 0
    assert not typed.read("o.jsonl")
    came = [line["judge"]["generated"] for line in lines(typed.read("o.jsonl.discarded.jsonl"))]
    assert {(c["stage"], c["cause"]) for c in came} == {("premise_writing", "copied")}


def test_faults_are_repaired_or_told_and_names_are_taken_out(typed: Typed) -> None:
    """A premise for each kind of failure (A.2); each norm gets one draft."""
    kinds = ("repeats", "misplaced", "stereotyped", "refused", "named", "twice", "gives_away")
    typed.write("norms.jsonl", [{"id": kind, **NORM, "behaviour": kind} for kind in kinds])
    names = {"premise": "Ann from Ohio left two coins."}
    typed.script(
        "writer.yaml",
        [
            # Repeated once, then told what was wrong, and better.
            said(
                "premise_writing",
                {"premise": "repeats, in a restaurant"},
                contains="repeats",
                lacks="REPEATED",
            ),
            said(
                "premise_fault",
                fault("repetition", "REPEATED"),
                contains="repeats, in a restaurant\n",
            ),
            said("premise_writing", {"premise": "A foreign people."}, contains="misplaced"),
            said(
                "premise_fault", fault("wrong_culture", "not theirs"), contains="A foreign people"
            ),
            said("premise_writing", {"premise": "The nurse, she."}, contains="stereotyped"),
            said("premise_fault", fault("stereotype", "a nurse"), contains="The nurse"),
            {
                "when": {"rubric": "premise_writing", "contains": "refused"},
                "text": "I cannot.",
                "finish_reason": "refusal",
            },
            said("premise_writing", names, contains="named"),
            said("premise_fault", fault("indicators", "Ann, Ohio"), contains="Ann from Ohio"),
            said("neutralising", {"premise": "Somebody left two coins."}, contains="Ann, Ohio"),
            said(
                "hypothesis_writing",
                three("Same.", "same", "Other."),
                contains="two coins.",
                lacks="are the same",
            ),
            *REST,
        ],
    )
    done = typed(*GO, "--each", "1", "--rounds", "2")
    assert done.returncode == 0, done.stderr
    kept = {one["behaviour"]: one for one in lines(typed.read("o.jsonl"))}
    assert [*kept] == ["repeats", "named", "twice", "gives_away"]
    assert kept["named"]["premise"] == "Somebody left two coins."
    # The hypotheses that were the same were written anew.
    distinct = [c["verdict"] for c in kept["named"]["judge"]["checks"] if c["check"] == "distinct"]
    assert distinct == ["fail", "pass"] and kept["named"]["hypothesis_3"] == THREE[2]
    assert lost(typed) == [
        ("wrong_culture", "fail"),
        ("stereotype", "fail"),
        ("premise_writing", "refused"),
    ]
    rounds = [
        max(check["round"] for check in one["judge"]["checks"])
        for one in lines(typed.read("o.jsonl.discarded.jsonl"))[:2]
    ]
    assert rounds == [3, 3], "every loop ends"
    assert max(map(len, done.stderr.decode().splitlines())) <= 80


def test_a_premise_of_ones_own_is_examined_and_never_written_anew(typed: Typed) -> None:
    own = {**NORM, "premise": "Everybody pays for themselves."}
    premises = (own["premise"], "Ann pays.", "Bad.", "")
    typed.write("norms.jsonl", [{**own, "premise": premise} for premise in premises])
    typed.script(
        "writer.yaml",
        [
            said("premise_fault", fault("indicators", "Ann"), contains="Ann pays"),
            said("neutralising", {"premise": "Somebody pays."}),
            said("premise_fault", fault("repetition", "bad"), contains="Bad."),
            *REST,
        ],
    )
    done = typed(*GO, "--each", "1")
    assert done.returncode == 0, done.stderr
    kept = lines(typed.read("o.jsonl"))
    # An empty cell is no premise: one is written.
    two_coins = REST[0]["reply"]["premise"]
    assert [one["premise"] for one in kept] == [own["premise"], "Somebody pays.", two_coins]
    assert "premise_template" not in kept[0] and lost(typed) == [("repetition", "fail")]


def test_hypotheses_that_were_not_written_are_missing_whatever_a_person_says_of_the_premise(
    typed: Typed,
) -> None:
    typed.write("norms.jsonl", [NORM, {**NORM, "behaviour": "refused"}])
    typed.script(
        "writer.yaml",
        [
            said("premise_writing", {"premise": "Nothing was said."}, contains="refused"),
            said("premise_fault", fault("stereotype", "a guest"), lacks="Nothing was said."),
            {
                "when": {"rubric": "hypothesis_writing", "contains": "Nothing was said."},
                "text": "I cannot.",
                "finish_reason": "refusal",
            },
            *REST,
        ],
    )
    go = (*GO, "--each", "1", "--rounds", "1")
    assert typed(*go).returncode == 0
    assert lost(typed) == [("stereotype", "fail"), ("hypothesis_writing", "refused")]
    drafts = lines(typed.read("o.jsonl.discarded.jsonl"))
    typed.write("mine.jsonl", [{**one, "labels": {"premise_fault": "sound"}} for one in drafts])
    decided = [("hypothesis_writing", "not asked"), ("hypothesis_writing", "refused")]
    for _ in range(2):
        assert typed(*go, "--resume", "--decisions", "mine.jsonl").returncode == 0
        assert lost(typed) == decided
    told = [line["judge"] for line in lines(typed.read("o.jsonl.discarded.jsonl"))]
    assert [one["verdict"] for one in told] == ["fail", "fail"]
    assert [one["reason"] for one in told] == [": ".join(one) for one in decided]


SPANISH = """
premises: ["Escribe: {behaviour} {location}.", "{form} ({style}): {behaviour} es {judgement}."]
judgements: [[normal], [inesperado]]
forms: [Un comentario]
styles: [habla de todos los días]
hypotheses: {goal: ["¿Qué quiere?"], state: ["¿Qué siente?"], actor: ["¿Quién es?"]}
"""


def test_templates_of_ones_own_in_ones_own_language(typed: Typed) -> None:
    norm = {"behaviour": "dejar propina", "location": "en un restaurante"}
    typed.write("norms.jsonl", [norm])
    typed.script("writer.yaml", REST)
    (typed.folder / "es.yaml").write_text(SPANISH)
    assert typed(*GO, "--option", "templates=es.yaml").returncode == 0
    kept = lines(typed.read("o.jsonl"))
    assert {one["judgement"] for one in kept} == {"normal", "inesperado"}
    assert all("dejar propina" in one["premise_task"] for one in kept)
    # The questions, too: a rubric of the package's name takes its place.
    ours = (Path(pairs.__file__).parents[2] / "rubrics" / "premise_writing.yaml").read_text()
    (typed.folder / "rubrics").mkdir()
    spanish = ours.replace("Write what the task above asks for.", "Escribe lo que pide la tarea.")
    (typed.folder / "rubrics" / "premise_writing.yaml").write_text(spanish)
    told_so = said("premise_writing", {"premise": "Dos monedas."}, contains="Escribe lo que pide")
    typed.script("writer.yaml", [told_so, *REST])
    own = ("--option", "templates=es.yaml", "--rubric", "rubrics/")
    assert typed(*GO, *own, "--overwrite").returncode == 0
    assert {one["premise"] for one in lines(typed.read("o.jsonl"))} == {"Dos monedas."}
    for change, told in (
        (
            ("{behaviour} {location}.", "{place}"),
            "es.yaml:2: premises.0: there is no {place}, only behaviour, location,",
        ),
        (("goal:", "aim:"), "es.yaml:6: hypotheses: one template of goal and two of other"),
        (("styles:", "manners:"), "es.yaml:5: manners: unknown key"),
    ):
        (typed.folder / "es.yaml").write_text(SPANISH.replace(*change))
        code, out, err = typed.text(*GO, "--overwrite", "--option", "templates=es.yaml")
        assert (code, out) == (2, "") and told in " ".join(err.split()), err


def test_a_line_that_is_no_script_is_told_and_the_plan_counts_both_loops(typed: Typed) -> None:
    typed.write("norms.jsonl", [NORM, {"behaviour": "nodding"}])
    typed.script("writer.yaml", REST)
    code, out, err = typed.text(*GO, "--dry-run")
    assert code == 0 and "2 drafts, 1 that cannot be asked about" in out, err
    least = [int(line.split()[-2]) for line in out.splitlines() if line.startswith("rewriting")]
    assert least == [4]
    code, _, err = typed.text(*GO)
    assert code == 3 and "line 2: field 'location' is missing" in err
    (told,) = lines(typed.read("o.jsonl.discarded.jsonl"))
    assert told["behaviour"] == "nodding" and told["judge"]["error"]["field"] == "location"


@pytest.mark.slow
def test_thirty_of_a_hundred_pairs_are_dropped_by_the_papers_rule(typed: Typed) -> None:
    """300 premises, 900 pairs, five raters a group made by rule: 630 pairs have a group of which
    75 % agree, and 270, the paper's 30 %, have none (3.6)."""
    typed.write("norms.jsonl", [{"id": f"n{n}", **NORM} for n in range(300)])
    typed.script("writer.yaml", REST)
    assert typed(*GO, "--each", "1").returncode == 0
    assert typed("build", "pairs", "o.jsonl", "-o", "pairs.jsonl").returncode == 0
    made = lines(typed.read("pairs.jsonl"))
    assert len(made) == 900 and made[1]["hypothesis"] == THREE[1]
    assert (made[0]["id"], made[0]["inference"]) == ("pairs-0-1/1", "goal")
    ratings = {True: ["E", "E", "E", "E", "N"], False: ["E", "E", "N", "N", "C"]}
    rated = [
        {**one, "us_ratings": ratings[n % 10 > 4], "in_ratings": ratings[n % 10 in range(3, 8)]}
        for n, one in enumerate(made)
    ]
    typed.write("rated.jsonl", rated)
    assert typed("build", "filtered", "rated.jsonl", "-o", "cali.jsonl").returncode == 0
    assert len(lines(typed.read("cali.jsonl"))) == 630


def test_built_pairs_are_what_evaluate_cali_asks_about(typed: Typed) -> None:
    typed.write("norms.jsonl", [NORM])
    typed.script("writer.yaml", REST)
    typed(*GO)
    typed("build", "pairs", "o.jsonl", "-o", "pairs.jsonl")
    made = lines(typed.read("pairs.jsonl"))
    assert [one["id"] for one in made] == [f"pairs-0-{n}/{k}" for n in (1, 2) for k in (1, 2, 3)]
    ratings = {"us_ratings": ["E"] * 4, "in_ratings": ["N"] * 4}
    typed.write("rated.jsonl", [{**one, **ratings} for one in made])
    code, out, err = typed.text(
        *("evaluate", "cali", "rated.jsonl", "-m", "scripted:writer.yaml", "--dry-run")
    )
    # 6 pairs in 3 conditions; of one premise 15 couples, less 3 of one text, in 3 conditions.
    assert code == 0 and "54 items" in out, err
