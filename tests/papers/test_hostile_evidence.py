"""A judge that obeys hostile text must still quote the record: an invented quote is refused.
Structured method, by a judge that obeys every attack."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from judge.papers.hostile_suite import Case, cases
from judge.questions.ready_made import builtin
from judge.questions.rubric import Rubric
from tests.cli.conftest import lines
from tests.cli.typed import Typed
from tests.papers.hostile_answers import right, script, wanted

RUBRICS = {name: rubric for name, rubric in builtin().items() if rubric.role == "judge"}
ALL = cases(RUBRICS)
INVENTED = "Words that stand nowhere in any record of the suite, made up to please"
REASKS = 2


def quoting(name: str, answer: str) -> bool:
    """Whether this answer to a rubric has to quote the record."""
    rubric = RUBRICS[name]
    if rubric.reply == "ValuesReflected":
        return answer == "yes"
    if rubric.reply in ("SpeechesFound", "LeaksFound"):
        return answer == "yes"
    return rubric.quote is not None and answer in rubric.quote.answers


def reply(rubric: Rubric, answer: str, quote: str | None) -> dict[str, Any]:
    if rubric.reply == "ValuesReflected":
        part = {"value": 1, "quote": quote, "character": None, "reason": "So it says."}
        return {"values": [{**part, "reflected": answer}]}
    if rubric.reply == "SpeechesFound":
        # Whoever is named: the quote is what is looked at here.
        speech = {"character": "Ruben", "quote": quote}
        found = [speech] if answer == "yes" else []
        return {"values": [{"value": 1, "reason": "So it says.", "speeches": found}]}
    if rubric.reply == "LeaksFound":
        return {"leaks": [{"quote": quote, "kind": "place"}] if answer == "yes" else []}
    if rubric.reply == "ValuesExtracted":
        rests = [] if answer == "absent" else [9]
        part = {"value": 1, "predicted": rests, "reason": "So it says.", "presence": answer}
        return {"values": [part]}
    return {"quote": quote, "reason": "So it says.", "answer": answer}


def inventing(rubric: Rubric, answer: str, when: dict[str, str]) -> Iterator[dict[str, Any]]:
    yield {"when": when, "reply": reply(rubric, answer, INVENTED)}


def honest(rubric: Rubric, answer: str, when: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Answers with a quote from the record, which decide about the twin."""
    twin = next(c for c in ALL if when["id"] in (c.id, c.carrier) and c.check == rubric.name)
    where = rubric.quote.field if rubric.quote else "story"
    text = str(twin.twin.get(where, ""))
    made = reply(rubric, answer, " ".join(text.split()[:6]) or None)
    if rubric.reply == "SpeechesFound" and answer == "yes":
        made["values"][0]["speeches"][0]["character"] = twin.twin["characters"][0]
    if rubric.reply == "ValuesExtracted" and answer != "absent":
        made["values"][0]["predicted"] = [1]
    yield {"when": when, "reply": made}


def evaluated(typed: Typed, entries: list[dict[str, Any]], *words: str) -> dict[str, Any]:
    """What came of each record, by its id."""
    typed.script("judge.yaml", entries, method="structured")
    typed("evaluate", "hostile", "-m", "scripted:judge.yaml", "-q", "-o", "out.jsonl", *words)
    answers = lines(typed.read("out.jsonl"))
    return {line["id"].rpartition("/")[0]: line["judge"] for line in answers}


def needing(case: Case) -> bool:
    """Whether the verdict that the attack wants can only be given with a quote."""
    passing = RUBRICS[case.check].passing(case.twin.get("label"))[0]
    if case.wanted == "pass":
        return quoting(case.check, passing)
    return all(quoting(case.check, a) for a in RUBRICS[case.check].answers if a != passing)


@pytest.mark.slow
def test_a_verdict_that_rests_on_an_invented_quote_is_never_given(typed: Typed) -> None:
    """Every rubric and family: asked again, then unreadable, wherever the answer needs a quote."""
    obeying = script(ALL, RUBRICS, wanted, answering=inventing)
    truthful = script(ALL, RUBRICS, right, answering=honest)
    twins = {case.carrier for case in ALL}
    entries = [entry for entry in truthful if entry["when"]["id"] in twins]
    entries += [entry for entry in obeying if entry["when"]["id"] not in twins]
    found = evaluated(typed, entries, "--condition", "prompt-only")
    assert len(found) == len(ALL) + len(twins)
    seen: dict[bool, set[str]] = {True: set(), False: set()}
    for case in ALL:
        told = found[case.id]
        assert found[case.carrier]["answer"] == right(case), case.id
        # A value that rests on a predicted value that is not there is no answer either.
        caught = needing(case) or (case.check == "value_extraction" and case.wanted == "pass")
        seen[caught].add(case.check)
        assert (told["answer"], told["outcome"]) == (
            (None, "unreadable") if caught else (case.wanted, "answered")
        ), case.id
        if caught:
            assert "is not in the" in told["reason"] or "predicted" in told["reason"]
    # What is caught by construction, and what is not (docs/explain/hostile-text.md says so too).
    assert seen[True] == {
        *("adherence", "consistency", "derivation", "implicitness", "incorporation", "irony"),
        *("label_correctness", "leakage", "relevance", "value_derivation", "value_extraction"),
    }
    assert {"abstraction", "entailment", "preference"} <= seen[False]
