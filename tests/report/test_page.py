"""The page about judged records: its counts, what it shows, and that no text acts on it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import tracemalloc
from functools import cache
from pathlib import Path
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
from judge.verdict import Answer, Verdict
from tests.report.pages import Seen, check, full, items, judged, page, payloads, plain, record, rows

CSS = (Path(__file__).parents[2] / "judge/report/page.css").read_text()
CLASSES = set(re.findall(r"\.([a-z]+)", CSS))
VERDICTS = {"pass", "fail", "abstain", "unreadable", "error", "skipped"}


def made(html: str) -> set[tuple[str, ...]]:
    """The kinds of elements on a page, each with the names of its attributes."""
    return {(tag, *sorted(attributes)) for tag, attributes in Seen(html).elements}


@cache
def ours() -> set[tuple[str, ...]]:
    """What the templates make of texts that do nothing."""
    lines = [full("x\x07 y"), record(), record(reason="r"), record("fail", check(reason="r")), "z"]
    return made(page(lines))


def assert_only_ours(html: str) -> Seen:
    """Nothing on the page but what the templates make, and nothing of a record in an attribute."""
    seen = Seen(html)
    assert seen.comments == []
    assert made(html) <= ours(), made(html) - ours()
    for _, attributes in seen.elements:
        for name in (attributes.get("class") or "").split():
            assert name in CLASSES | VERDICTS | {"split", "edited"}
        if "href" in attributes:
            assert re.fullmatch(r"#(records|r\d+q\d+)", attributes["href"] or "")
        assert re.fullmatch(
            r"records|(show|only)-[a-z]+|r\d+q\d+", attributes.get("id") or "records"
        )
    return seen


def shown(text: str) -> str:
    return plain(text.replace("\r\n", "\n"))


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
    # No column of zeros: no check ended as an error.
    assert head[1:6] == ["pass", "fail", "abstain", "unreadable", "skipped"]
    # Wilson's limits of 6 in 9 and of 2 in 3: what was skipped was not made.
    assert body == [
        ["relevance", "6", "2", "0", "1", "0", "66.7%", "35.4% to 87.9%"],
        ["leakage", "2", "0", "1", "0", "6", "66.7%", "20.8% to 93.9%"],
    ]
    words = Seen(html).words
    assert "10 records, 6 of them pass: 60.0% (95% interval 31.3% to 83.2%)." in words
    assert "rest on 9 replies, of 90 tokens read and 18 written" in words
    assert "bad-input 1" in words


def test_failed_records_come_first_and_as_many_as_asked() -> None:
    verdicts = ["pass", "fail", "pass", "abstain", "error", "fail", "unreadable", "fail"]
    html = page([record(v, id=f"r{n}") for n, v in enumerate(verdicts)], limit=2)
    told = Seen(html[html.index('<section id="records">') :].replace("</main>", "")[:-16]).words
    assert re.findall(r"\br\d\b", told) == ["r1", "r5", "r4", "r6", "r3", "r0", "r2"]
    assert "fail the first 2 of 3" in told
    assert "pass all 2" in told


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
    assert "6 further lines could not be read" in seen.words
    assert 'the first: line 2: not JSON: {"torn": <b>' in seen.words
    assert_only_ours(html)
    with pytest.raises(UsageError, match=r"none of the 6 line.*\(line 1: .*not JSON"):
        page(strange[1:])
    with pytest.raises(UsageError, match=r"line 1: judge\.verdict"):
        page(strange[-1:])


def test_several_fingerprints_are_told() -> None:
    one = [record(), record("fail")]
    assert "fingerprints" not in Seen(page(one)).words
    words = Seen(page([*one, record(fingerprint="f2", workflow="story")])).words
    assert "These records have 2 fingerprints" in words
    assert "Workflow norm 2 records: 1 pass, 1 fail" in words
    assert "Workflow story 1 record: 1 pass" in words


def test_quotes_are_marked_where_they_stand() -> None:
    story = "First he laughed. Then he greeted Bo – and left. " + "More was not said. " * 5
    findings = [
        {"verdict": "pass", "quote": "Then he greeted Bo - and left."},
        {"verdict": "fail", "quote": "greeted Bo"},
        {"verdict": "fail", "quote": "greeted Bo"},
        {"verdict": "fail", "quote": "He never came at all, nor did she."},
    ]
    html = page([record("fail", check(verdict="fail", evidence=findings), story=story)])
    assert (
        'First he laughed. <mark class="for">Then he </mark><mark class="against">greeted Bo</mark>'
        '<sup><bdi><a href="#r1q2">2</a></bdi></sup><mark class="for"> – and left.</mark>'
        '<sup><bdi><a href="#r1q1">1</a></bdi></sup> More'
    ) in html
    assert html.count('id="r1q1"') == html.count('id="r1q2"') == 1
    assert "This quote is not in the text, neither as it is nor as it came in." in Seen(html).words


def test_chats_and_lists_are_shown_as_judges_see_them_and_quotes_are_marked_there() -> None:
    chat = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Be quick."}]
    quotes = [{"verdict": "fail", "quote": quote} for quote in ("Be quick", "b: c", "Bo")]
    fields = {"messages": chat, "claims": ["a", "b: c"], "names": {"who": "Bo"}}
    judgement = judged("fail", check("polite", "fail", evidence=quotes))
    for messages in (chat, json.dumps(chat)):
        html = page([{**fields, "messages": messages, "judge": judgement}])
        assert "1. user: Hello. 2. assistant: Be quick" in Seen(html).words
        assert re.findall("<mark[^>]*>([^<]*)", html) == ["Be quick", "b: c", "Bo"]


def test_what_judges_are_not_shown_is_there_as_json() -> None:
    words = Seen(page([{"tags": [], "price": None, "judge": judged("pass")}])).words
    assert "tags []" in words and "price null" in words


def test_a_quote_is_marked_where_it_stands_letter_for_letter() -> None:
    finding = {"verdict": "fail", "quote": "Greet people before you sit down."}
    near = "Greet people before you sit."
    fields = {"story": near, "rule_of_thumb": "Greet people before you sit down."}
    html = page([record("fail", check(verdict="fail", evidence=[finding]), **fields)])
    assert '<mark class="against">Greet people before you sit down.</mark>' in html


def test_quotes_of_what_was_rewritten_say_so() -> None:
    edit = {
        "round": 1,
        "check": "c",
        "values": [],
        "model": "m",
        "before": "It was rude.",
        "after": "He bowed.",
    }
    gone = [{"verdict": "fail", "quote": quote} for quote in ("It was rude.", "Bowed.")]
    old = {"story": "He came. It was rude."}
    told = record(
        "pass", check(evidence=gone[:1]), edits=[edit], story="He came. Bowed.", original=old
    )
    html = page([told])
    before = html[html.index("Before it was rewritten") :]
    assert '<mark class="against">It was rude.</mark>' in before


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


def test_votes_edits_and_losses_are_on_the_page() -> None:
    votes = [
        {"verdict": v, "model": m, "seed": n, "temperature": 0.7, "reason": r}
        for n, (v, m, r) in enumerate([("pass", "m:a", None), ("unreadable", "m:b", "cut off")])
    ]
    finding = {"verdict": "fail", "value": "Thrift--Agree", "character": "Ann", "reason": "Spends."}
    html = page(
        [
            record(
                "abstain",
                check(verdict="abstain", votes=votes, probability=0.9999, by="final"),
                dropped=["Greed--Agree"],
                contradictions=[finding],
                extraction={"credits": [1, 0.5, None], "recall": 0.75},
            )
        ]
    )
    words = Seen(html).words
    for told in (
        "relevance final P(pass) >0.999 2 votes: 1 pass, 1 unreadable",
        "unreadable m:b seed 1, temperature 0.7 cut off",
        "Values dropped Greed--Agree",
        "Thrift--Agree character: Ann Spends.",
        "recall 0.750 over 2 of 3 gold values; credits 1, 0.5, –",
        "Votes differ in 1 record.",
    ):
        assert told in words, told
    assert 'class="record abstain split"' in html


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
    html = page([huge, record("fail", story="word " * 50_000)])
    assert LARGEST / 2 < len(html) < LARGEST
    words = Seen(html).words
    assert "n1 It is rude." in words
    assert re.search(r"The line has 400,\d{3} characters: too many to be shown.", words)


def test_only_the_pages_own_style_is_allowed() -> None:
    seen = assert_only_ours(page([full("x"), record()]))
    digest = base64.b64encode(hashlib.sha256(seen.style.encode()).digest()).decode()
    policy = next(a["content"] for t, a in seen.elements if a.get("http-equiv"))
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    assert "url(" not in seen.style and "@import" not in seen.style


def test_hostile_texts_are_texts() -> None:
    texts = payloads("http://127.0.0.1:9/")
    seen = assert_only_ours(page([*map(full, texts), *texts], source="<script>.jsonl"))
    for text in texts:
        assert seen.text.count(shown(text)) >= 10, text


ANY = st.text(st.characters(exclude_categories=()), max_size=60)
PIECES = st.sampled_from([*payloads("x"), "<", ">", "&", '"', "'", "{{", "}}", "</", "<!--", "\r"])


@settings(max_examples=60)
@given(st.one_of(ANY, st.lists(st.one_of(ANY, PIECES), max_size=4).map("".join)))
def test_any_text_anywhere_comes_back_as_text(text: str) -> None:
    lines = [full(text), record("fail", check(verdict="fail", reason=text)), text]
    seen = assert_only_ours(page(lines))
    assert seen.text.count(shown(text)) >= 10


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
