"""The page about judged records: counts, shown records, and that no text is run as markup."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import tracemalloc
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from random import Random
from time import process_time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.errors import UsageError
from judge.records.lines import Lines
from judge.report.entry import LARGEST, Quotes
from judge.report.page import render
from judge.report.text import changes, visible
from judge.run.description import RunDescriptions
from judge.verdict import Answer, Verdict
from tests.report.pages import (
    Seen,
    check,
    entries,
    full,
    items,
    judged,
    leaves,
    page,
    payloads,
    plain,
    record,
    rows,
)

HTML = "".join(path.read_text() for path in Path(render.__code__.co_filename).parent.glob("*.html"))
IDS = set(re.findall(r'id="(?:\{\{ prefix \}\})?([a-z]+)"', HTML))


def made(html: str) -> set[tuple[str, ...]]:
    """The kinds of elements on a page, each with the names of its attributes."""
    return {(tag, *sorted(attributes)) for tag, attributes in Seen(html).elements}


@cache
def ours() -> set[tuple[str, ...]]:
    """The output of the templates for harmless texts."""
    lines = [full("x\x07 y"), record(), record(reason="r"), record("fail", check(reason="r")), "z"]
    return made(page(lines))


def assert_only_ours(html: str, *texts: str) -> Seen:
    """Nothing on the page but what the templates make, and no text of a record in an attribute."""
    seen = Seen(html)
    assert seen.comments == []
    assert made(html) <= ours(), made(html) - ours()
    for _, attributes in seen.elements:
        assert attributes.get("id") in {None, *IDS}
        assert (attributes.get("href") or "#records")[1:] in IDS
        values = [value or "" for value in attributes.values()]
        assert not [text for text in texts if len(text) > 3 and any(text in v for v in values)]
    return seen


def test_counts_shares_and_intervals() -> None:
    lines = [
        *(record("pass", check(), check("leakage", "skipped")) for _ in range(6)),
        record("fail", check(verdict="fail"), check("leakage")),
        # Asked again after a rewrite: the last time counts.
        record("fail", check(verdict="pass"), check(verdict="fail", round=2), check("leakage")),
        record("unreadable", check(verdict="unreadable"), check("leakage", "abstain")),
        {"raw": "{", "judge": {"verdict": "error", "error": {"type": "bad-input", "message": "m"}}},
    ]
    html = page(lines)
    # Wilson's 95 % limits of 2, 1 and 6 in 10.
    assert [row[:4] for row in rows(html, "Verdicts")[1:]] == [
        ["fail", "2", "20.0%", "5.7% to 51.0%"],
        ["error", "1", "10.0%", "1.8% to 40.4%"],
        ["unreadable", "1", "10.0%", "1.8% to 40.4%"],
        ["pass", "6", "60.0%", "31.3% to 83.2%"],
    ]
    head, *body = rows(html, "Checks")
    # As gates count: the record without a check is an error of both.
    assert head[1:7] == ["pass", "fail", "abstain", "unreadable", "error", "skipped"]
    # Wilson's limits of 6 in 10 and of 2 in 4: what was skipped was not made.
    assert [row[:9] for row in body] == [
        ["relevance", "6", "2", "0", "1", "1", "0", "60.0%", "31.3% to 83.2%"],
        ["leakage", "2", "0", "1", "0", "1", "6", "50.0%", "15.0% to 85.0%"],
    ]
    words = Seen(html).words
    assert "10 records, 6 of them pass: 60.0% (95% interval 31.3% to 83.2%)." in words
    assert "use 9 replies, with 90 input tokens and 18 output tokens" in words
    assert "bad-input 1" in words


def test_votes_differ_in_labels_and_in_entries_too() -> None:
    """Of counted labels every vote is `answered`; of entries the worst may be the same."""

    def votes(*said: Mapping[str | None, str]) -> list[dict[str, Any]]:
        return [
            {
                "model": f"m:{n}",
                "verdict": "answered",
                "evidence": [
                    {"value": v, "verdict": "answered", "answer": a} for v, a in one.items()
                ],
            }
            for n, one in enumerate(said)
        ]

    casts = {
        "labels": votes({None: "warm"}, {None: "rude"}),
        "alike": votes({None: "warm"}, {None: "warm"}),
        "entries": votes({"x": "warm", "y": "rude"}, {"x": "rude", "y": "warm"}),
        # Later votes are asked only about entries that are open.
        "open": votes({"x": "warm", "y": "rude"}, {"y": "rude"}),
    }
    counted = {"counted": ["warm", "rude"]}
    html = page([record("answered", check(votes=v, **counted), id=n) for n, v in casts.items()])
    assert "Votes differ in 2 records." in Seen(html).words
    split = [entry["id"] for entry in entries(html) if entry["judge"]["checks"][0]["split"]]
    assert split == ["labels", "entries"]


def test_of_each_verdict_as_many_records_are_shown_as_asked() -> None:
    verdicts = ["pass", "fail", "pass", "abstain", "error", "fail", "unreadable", "fail"]
    html = page([record(v, id=f"r{n}") for n, v in enumerate(verdicts)], limit=2)
    assert [entry["id"] for entry in entries(html)] == ["r0", "r1", "r2", "r3", "r4", "r5", "r6"]
    words = Seen(html).words
    shown = "Shown: the first 2 of 3 fail, all 1 error, all 1 unreadable, all 1 abstain, all 2 pass"
    assert shown in words
    boxes = [a["value"] for _, a in Seen(html).elements if a.get("name") == "verdict"]
    assert boxes == ["fail", "error", "unreadable", "abstain", "pass"], "failed ones come first"


def test_lines_that_judge_did_not_write_count_for_nothing() -> None:
    strange: list[Any] = [
        record(),
        '{"torn": <b>',
        {"id": "x"},
        {"judge": {"verdict": "<script>"}},
        {"judge": judged(checks="none")},
        {"judge": judged("pass", check(probability=7.0))},
        {"judge": {"benchmark": "normad", "verdict": "right"}},
    ]
    html = page(strange, limit=4)
    seen = Seen(html)
    assert rows(html, "Verdicts")[1][1] == "1"
    assert "6 further lines could not be read as output of judge validate" in seen.words
    assert 'the first: line 2: not JSON: {"torn": <b>' in seen.words
    assert_only_ours(html)
    with pytest.raises(UsageError, match=r"none of the 6 line.*\(line 1: .*not JSON"):
        page(strange[1:])
    with pytest.raises(UsageError, match=r"line 1: judge\.verdict"):
        page(strange[-1:])


def test_in_two_runs_lines_that_could_not_be_read_stand_beside_one_another(tmp_path: Path) -> None:
    error = {"verdict": "error", "error": {"type": "bad-input", "message": "not JSON", "line": 2}}
    lines = [record(), {"raw": "{", "judge": {"name": "in:2", **error}}]
    for name, more in (("a", []), ("b", [{"id": "foreign"}])):
        text = "".join(json.dumps(line) + "\n" for line in [*lines, *more])
        (tmp_path / name).write_text(text)
    html, *_ = render(Lines.read([str(tmp_path / "a"), str(tmp_path / "b")]), limit=9)
    keys = [entry["key"] for entry in entries(html)]
    assert len(keys) == 4 and keys[:2] == keys[2:] and keys[0] != keys[1]
    assert "the first: b, line 3: has no verdict" in Seen(html).words


def test_several_fingerprints_are_told() -> None:
    one = [record(), record("fail")]
    assert "fingerprints" not in Seen(page(one)).words
    words = Seen(page([*one, record(fingerprint="f2", workflow="story")])).words
    assert "These records have 2 fingerprints" in words
    assert "Workflow norm 2 records: 1 pass, 1 fail" in words
    assert "Workflow story 1 record: 1 pass" in words


def texts_of(line: Any) -> dict[str, Any]:
    """The texts of a line as the page shows them, in pieces where they are quoted."""
    (entry,) = entries(page([line]))
    return {name: content for name, content, _ in [*entry["texts"], *entry["before"]]}


def test_quotes_are_marked_where_they_stand() -> None:
    story = "First he laughed. Then he greeted Bo – and left. " + "More was not said. " * 5
    nowhere = "He never came at all, nor did she."
    quotes = ["Then he greeted Bo - and left.", "greeted Bo", "greeted Bo", nowhere]
    findings = [{"verdict": "fail" if n else "pass", "quote": q} for n, q in enumerate(quotes)]
    (entry,) = entries(
        page([record("fail", check(verdict="fail", evidence=findings), story=story)])
    )
    name, pieces, _ = entry["texts"][0]
    assert name == "story"
    assert pieces[:4] == [
        ["First he laughed. ", "", []],
        ["Then he ", "for", []],
        ["greeted Bo", "against", [2]],
        [" – and left.", "for", [1]],
    ]
    notes = {quotes[0]: 1, "greeted Bo": 2}
    notes[nowhere] = "is not in the text, neither now nor as it came in"
    assert dict(entry["quotes"]) == notes


def test_the_quote_of_an_answer_that_neither_passes_nor_fails_speaks_against_nothing() -> None:
    finding = {"verdict": "answered", "answer": "cold", "quote": "He laughed."}
    made = check("tone", "answered", answer="cold", evidence=[finding])
    texts = texts_of(record("answered", made, story="He laughed."))
    assert texts["story"] == [["He laughed.", "for", [1]]]


def test_chats_and_lists_are_shown_as_judges_see_them_and_quotes_are_marked_there() -> None:
    chat = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Be quick."}]
    quotes = [{"verdict": "fail", "quote": quote} for quote in ("Be quick", "b: c", "Bo")]
    fields = {"messages": chat, "claims": ["a", "b: c"], "names": {"who": "Bo"}}
    judgement = judged("fail", check("polite", "fail", evidence=quotes))
    for messages in (chat, json.dumps(chat)):
        texts = texts_of({**fields, "messages": messages, "judge": judgement})
        whole = "".join(piece[0] for piece in texts["messages"])
        assert whole == "1. user: Hello.\n2. assistant: Be quick."
        marked = [text for pieces in texts.values() for text, tone, _ in pieces if tone]
        assert marked == ["Be quick", "b: c", "Bo"]


def test_what_the_judge_was_asked_about_stands_first() -> None:
    """A run on `text`, which the records have under another name; of a run that is not known the
    record's own order stays."""
    line = {"id": "a", "country": "JP", "E-Mail": "Hello.", "judge": judged()}
    own = {"polite": {"name": "polite", "fields": ["text"], "question": "Is it polite?"}}
    run = {"own_rubrics": own, "settings": {"map": ["text=E-Mail"]}}
    for described, names in (({"f1": run}, ["E-Mail", "country"]), ({}, ["country", "E-Mail"])):
        lines = Lines(items([line]), ["o"])
        (entry,) = entries(
            render(lines, limit=1, described=RunDescriptions.from_json(described))[0]
        )
        assert [field[0] for field in entry["texts"]] == names


def test_what_judges_are_not_shown_is_there_as_json() -> None:
    line = {"tags": [], "price": None, "judge": judged("pass")}
    assert texts_of(line) == {"tags": "[]", "price": "null"}


def test_a_quote_is_marked_where_it_stands_letter_for_letter() -> None:
    finding = {"verdict": "fail", "quote": "Greet people before you sit down."}
    near = "Greet people before you sit."
    fields = {"story": near, "rule_of_thumb": "Greet people before you sit down."}
    texts = texts_of(record("fail", check(verdict="fail", evidence=[finding]), **fields))
    assert texts["rule_of_thumb"] == [["Greet people before you sit down.", "against", [1]]]


def test_quotes_of_what_was_rewritten_are_marked_in_the_text_before() -> None:
    edit = {"round": 1, "check": "c", "values": [], "model": "m"}
    edit |= {"before": "It was rude.", "after": "He bowed."}
    gone = [{"verdict": "fail", "quote": "It was rude."}]
    old = {"story": "He came. It was rude."}
    told = record("pass", check(evidence=gone), edits=[edit], story="He came. Bowed.", original=old)
    assert texts_of(told)["story"] == [["He came. ", "", []], ["It was rude.", "against", [1]]]
    (entry,) = entries(page([told]))
    assert entry["judge"]["edits"][0]["changes"] == [["del", "It was rude."], ["ins", "He bowed."]]


def test_rewrites_are_shown_word_by_word() -> None:
    found = changes("He gave the old man a cup of tea.", "He gave the old woman two cups of tea.")
    assert found == [
        ("same", "He gave the old "),
        ("del", "man a cup "),
        ("ins", "woman two cups "),
        ("same", "of tea."),
    ]
    whole = changes("One thing was so.", "Quite another happened elsewhere!")
    assert [kind for kind, _ in whole] == ["del", "ins"]
    assert changes("", "new") == [("ins", "new")]
    assert [kind for kind, _ in changes("w " * 5000, "w " * 5000)] == ["del", "ins"]


@given(st.text("ab c.猫", max_size=30), st.text("ab c.猫", max_size=30))
def test_changes_lose_nothing(before: str, after: str) -> None:
    found = changes(before, after)
    assert "".join(text for kind, text in found if kind != "ins") == before
    assert "".join(text for kind, text in found if kind != "del") == after


def test_what_cannot_be_seen_is_named() -> None:
    assert plain("a\x00\u202eb\u200b\tc\n\ud800\U000e0041") == (
        "aU+0000U+202EbU+200B\tc\nU+D800U+E0041"
    )
    # Joiners that shape letters or emoji stay; one that hides between Latin letters does not.
    assert plain("می‌خواهم 👩‍🚀") == "می‌خواهم 👩‍🚀"
    assert plain("pass\u200dword") == "passU+200Dword"
    assert visible("<b>\x07") == '&lt;b&gt;<span class="unseen">U+0007</span>'


def test_of_a_huge_record_the_summary_is_shown() -> None:
    huge = record("fail", reason="It is rude.", story="y" * LARGEST)
    first, second = entries(page([huge, record("fail", story="word " * 50_000)]))
    assert (first["id"], first["judge"]["reason"]) == ("n1", "It is rude.")
    assert first["size"] > LARGEST and "texts" not in first
    assert len(second["texts"][0][1]) == 250_000


def test_a_page_has_room_for_so_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes leave a third of it to the others."""
    monkeypatch.setattr("judge.report.page.MOST_BYTES", 300_000)
    noise = Random(0)
    lines = [record("pass", id=f"p{n}", story=noise.randbytes(9_000).hex()) for n in range(50)]
    lines += [record("fail", id=f"f{n}", story=noise.randbytes(9_000).hex()) for n in range(5)]
    html = page(lines)
    shown = [entry["id"] for entry in entries(html)]
    assert 15 < len(shown) < 35 and shown[-5:] == ["f0", "f1", "f2", "f3", "f4"]
    assert f"the first {len(shown) - 5} of 50 pass" in Seen(html).words


def test_only_the_pages_own_style_and_script_are_allowed() -> None:
    seen = assert_only_ours(page([full("x"), record()]))
    digests = {
        name: base64.b64encode(hashlib.sha256(seen.inline[name].encode()).digest()).decode()
        for name in ("style", "script")
    }
    policy = next(a["content"] for t, a in seen.elements if a.get("http-equiv"))
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digests['style']}'; "
        f"script-src 'sha256-{digests['script']}'; base-uri 'none'; form-action 'none'"
    )
    assert "url(" not in seen.inline["style"] and "@import" not in seen.inline["style"]
    for acting in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval("):
        assert acting not in seen.inline["script"]


def test_hostile_texts_are_texts() -> None:
    texts = payloads("http://127.0.0.1:9/")
    html = page([*map(full, texts), *texts], source="<script>.jsonl")
    assert_only_ours(html, *texts)
    found = [*leaves(entries(html))]
    for text in texts:
        assert sum(text in leaf for leaf in found) >= 10, text


ANY = st.text(st.characters(exclude_categories=()), max_size=60)
PIECES = st.sampled_from([*payloads("x"), "<", ">", "&", '"', "'", "{{", "}}", "</", "<!--", "\r"])


@settings(max_examples=40)
@given(st.one_of(ANY, st.lists(st.one_of(ANY, PIECES), max_size=4).map("".join)))
def test_any_text_anywhere_comes_back_as_text(text: str) -> None:
    html = page([full(text), record("fail", check(verdict="fail", reason=text)), text])
    assert_only_ours(html)
    assert sum(text in leaf for leaf in leaves(entries(html))) >= 10


def test_a_number_that_json_has_not_leaves_the_page_whole() -> None:
    vote = {"verdict": "pass", "model": "m:a", "score": float("nan"), "evidence": []}
    (entry,) = entries(page([record("pass", check(votes=[vote], score=float("inf")))]))
    assert entry["judge"]["checks"][0]["score"] == "Infinity"


def test_each_verdict_means_what_happened_and_a_question_is_in_words() -> None:
    empty = record("abstain", check("a", "abstain", votes=[], reason="the record has no story"))
    unsure = record("abstain", check("a", "abstain", probability=0.5))
    bad = record("error", error={"type": "bad-input", "message": "not JSON", "line": 3})
    del bad["judge"]["fingerprint"]
    silent = record("error", error={"type": "server-fault", "message": "500"})

    def meanings(*lines: dict[str, Any]) -> dict[str, str]:
        return {row[0]: row[-1] for row in rows(page(lines), "Verdicts")[1:]}

    people = "no majority, or not sure enough: for people to decide"
    nothing, again = "no text to judge, so no judge was asked", "no reply; judge validate --resume"
    mend = "no readable record: mend the input, then --resume"
    assert meanings(empty, bad) == {"abstain": nothing, "error": mend}
    told = meanings(unsure, silent)
    assert told["abstain"] == people and told["error"] == f"{again} asks again"
    told = meanings(empty, unsure, unsure, bad, silent)
    assert told["abstain"] == f"1 of 3: {nothing}; the others: {people}"
    assert told["error"] == f"1 of 2: {mend}; the others: {again} asks again"

    hindi = "\u092d\u093e\u0937\u093e"
    question = f'Does the story show that "{{{{ value }}}}" in {{{{ {hindi}|lower }}}}?'
    asked = {"f1": {"questions": {"a": question}}}
    html = render(
        Lines(items([unsure]), ["o"]), limit=9, described=RunDescriptions.from_json(asked)
    )[0]
    assert '<p class="question" dir="auto" lang="">Does the story' in html
    assert f'<h1 dir="auto">Does the story show that &#34;[value]&#34; in [{hindi}]?</h1>' in html


def test_scores_labels_cost_and_questions_are_told() -> None:
    def judged_as(score: float, label: str, cost: float | None) -> dict[str, Any]:
        made = check("polite", "answered", score=score)
        usage = {"replies": 1, "input_tokens": 1, "output_tokens": 1, "cost_usd": cost}
        return record("answered", made, usage=usage) | {"labels": {"polite": label}}

    lines = [judged_as(4.4, "4", 0.5), judged_as(2, "4", 0.25), judged_as(2, "2", None)]
    unsure = record("abstain", check("warm", "abstain", probability=0.5, answer="yes"))
    questions = {"polite": "How polite is <it>?", "other": "Not asked."}
    scale = {"name": "polite", "question": "How polite is it?", "answers": ["1", "2", "3", "4"]}
    run: dict[str, Any] = {"questions": questions, "own_rubrics": {"polite": {**scale, "pass": []}}}
    asked = {"f1": run}
    html = render(
        Lines(items([*lines, unsure]), ["o"]),
        limit=9,
        described=RunDescriptions.from_json(asked),
        date="May 1",
    )[0]
    words = Seen(html).words
    for told in (
        "Judge report · May 1",
        "How polite is <it>?",
        "Cost at least $0.75",
        "The judge agrees with 66.7% of 3 labels (20.8% to 93.9%).",
        "Judge m:a",
    ):
        assert told in words, told
    assert words.count("Not asked") == 1, "among the settings of the run alone"
    without_price = [judged_as(2, "2", None), judged_as(2, "2", 0.0)]
    assert "Cost not known" in Seen(page(without_price)).words, "of the other no reply was asked"
    assert rows(html, "Labels and verdicts") == [
        ["Label", "2", "4"],
        ["2", "1", "0"],
        ["4", "1", "1"],
    ]
    drawn = [a["aria-label"] for t, a in Seen(html).elements if t == "svg" and "aria-label" in a]
    assert drawn[1:] == [
        "Score: 2 at 2, 1 at 4.4",
        "Probability of a pass: 1 from 0.5 to 0.55",
    ]
    labels = [entry["labels"] for entry in entries(html)]
    assert labels[:2] == [[["polite", "4", "4", True]], [["polite", "4", "2", False]]]


def test_what_people_decided_is_counted_apart_from_the_judge() -> None:
    """A person turns a failure, settles an abstention and bears a failure out; a label is held
    against the judge alone."""

    def decided(was: str, now: str, **more: Any) -> dict[str, Any]:
        person = {"check": "polite", "by": "person", "verdict": now, "answer": now}
        return record(now, check("polite", was, answer=was), person) | more

    lines = [record("pass", check("polite")), decided("abstain", "pass")]
    turned = decided("fail", "pass", labels={"polite": "pass"})
    html = page([*lines, turned, decided("fail", "fail")])
    words = Seen(html).words
    assert "Decided by a person 3 checks: 1 against the judge, 1 that it left open" in words
    table = html[html.index("Decided by a person: ") :]
    found = re.findall(r"badge (\w+)", table[: table.index("</table>")])
    assert sorted(zip(found[::2], found[1::2], strict=True)) == [
        *(("abstain", "pass"), ("fail", "fail"), ("fail", "pass")),
    ]
    assert "The judge agrees with 0.0% of 1 labels" in words
    assert "Decided by a person" not in Seen(page(lines[:1])).words
    # A person passes a check of a record that fails by another one all the same.
    person = {"check": "polite", "by": "person", "verdict": "pass", "answer": "pass"}
    failed = [check(name, "fail", answer="fail") for name in ("polite", "clear")]
    words = Seen(page([record("fail", *failed, person)])).words
    assert "Decided by a person 1 checks: 1 against the judge, 0 that it left open" in words


def test_lines_are_not_held() -> None:
    def many(count: int) -> Any:
        return items(record(story=f"{n} " * 5_000, id=str(n)) for n in range(count))

    def peak(count: int) -> int:
        tracemalloc.start()
        render(Lines(many(count), ["o"]), limit=2)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(10)
    few, lots = peak(50), peak(500)
    # 450 more lines of some 15 kB would be 6 MB.
    assert lots - few < 1_000_000


def test_quotes_that_stand_nowhere_are_not_looked_for_without_end() -> None:
    """A line of long quotes once took nine minutes."""
    made = Quotes({("now", str(n)): "the fox " * 2500 for n in range(50)})
    began = process_time()
    for number in range(100):
        finding = Answer(verdict=Verdict.PASS, quote=f"{number} " + "q w e r t y " * 160)
        note = made.note(finding)[1]
    assert note == "is not in the text word for word; judge searched no further"
    assert process_time() - began < 10
