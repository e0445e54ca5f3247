"""The report page in a real browser: searched, sorted, filtered, opened, by keyboard; hostile
records; how long thousands of records take."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from judge.report.files import report
from judge.report.page import MOST_BYTES
from tests.report.pages import check, full, payloads, plain, record
from tests.report.test_calibrated import calibration
from tests.report.test_calibrated import page as calibration_page
from tests.report.test_calibrated import report as calibrated
from tests.web.test_browser import SCREENS

pytestmark = pytest.mark.slow


class OpenPage:
    """The page of some lines, in a browser."""

    def __init__(self, browser: Any, folder: Path) -> None:
        self._folder, self.faults = folder, list[str]()
        self.tab = browser.new_page(viewport={"width": 1440, "height": 900})
        self.tab.on("pageerror", lambda error: self.faults.append(str(error)))
        self.tab.on("console", lambda message: self.faults.append(message.text))
        self.tab.on("request", lambda request: self.faults.append(request.url))

    def show(self, *runs: Sequence[Any], view: str = "") -> float:
        """Make and open the page; the seconds until it can be used."""
        files = [self._folder / f"{name}.jsonl" for name, _ in zip("ab", runs, strict=False)]
        for file, lines in zip(files, runs, strict=True):
            texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
            file.write_text("\n".join(texts))
        out = self._folder / "page.html"
        report(files, out, overwrite=True)
        began = time.monotonic()
        self.tab.goto(f"{out.as_uri()}{view}")
        self.tab.wait_for_selector("#filters:not([hidden])", timeout=120_000)
        self.faults[:] = [one for one in self.faults if not one.startswith(out.as_uri())]
        return time.monotonic() - began

    def press(self, *keys: str) -> None:
        for key in keys:
            self.tab.keyboard.press(key)

    @property
    def names(self) -> list[str]:
        """The records that are drawn, in their order."""
        return [str(name) for name in self.tab.locator(".row .id").all_inner_texts()]

    @property
    def told(self) -> str:
        return str(self.tab.inner_text("#told"))

    def wait(self, told: str) -> None:
        self.tab.wait_for_function(
            "told => document.getElementById('told').value === told", arg=told
        )

    def opened(self) -> str:
        # The page opens a record when its address has changed, which comes after the click.
        self.tab.wait_for_function("() => dialog.open && opened")
        return " ".join(self.tab.inner_text("dialog").split())

    def close(self) -> None:
        self.press("Escape")
        # The page hears of it after the browser has closed the dialog.
        self.tab.wait_for_function("() => !location.hash.includes('open=')")


@pytest.fixture
def shown(browser: Any, tmp_path: Path) -> Iterator[OpenPage]:
    page = OpenPage(browser, tmp_path)
    yield page
    page.tab.close()


def mail(number: int, verdict: str, **more: Any) -> dict[str, Any]:
    quote = {"verdict": verdict, "answer": "yes", "quote": "Dear Bo", "reason": f"Reason {number}."}
    probability = {"pass": 0.9, "fail": 0.2, "abstain": 0.5}[verdict] + number / 1e5
    made = check("polite", verdict, evidence=[quote], probability=probability, by="final")
    story = f"Dear Bo, this is number {number} of a few. " * 3
    return record(verdict, made, id=f"m{number}", story=story, **more)


def test_records_are_found_sorted_and_read_by_keyboard(shown: OpenPage) -> None:
    verdicts = ["pass", "fail", "pass", "abstain"]
    shown.show([mail(n, verdicts[n % 4]) for n in range(1000)])
    assert shown.told == "1000 records" and shown.names[:2] == ["m1", "m5"], "failed first"
    assert len(shown.names) < 60, "only what is looked at is drawn"
    clear = shown.tab.get_by_role("button", name="Clear all")
    assert not clear.is_visible(), "nothing is set"
    shown.tab.evaluate("scrollBy(0, list.getBoundingClientRect().top + 10.5 * height)")
    shown.press("ArrowDown")
    row = shown.tab.evaluate("document.activeElement.parentElement.ariaPosInSet")
    top = shown.tab.evaluate("document.activeElement.getBoundingClientRect().top")
    assert int(row) > 11 and top >= shown.tab.evaluate("form.offsetHeight"), "the first in sight"
    shown.press("Enter")
    assert f"{row} of 1000" in shown.opened()
    shown.close()
    shown.press("/", *"Number 77", "Enter")
    assert "m77" in shown.opened() and "1 of 19" in shown.opened(), "found at once"
    shown.close()
    shown.tab.fill("[name=q]", "")
    shown.wait("1000 records")
    shown.press(*"Number 77")
    shown.wait("19 of 1000 records")
    assert shown.names[0] == "m77" and "q=Number+77" in shown.tab.url
    view = shown.tab.url
    shown.press("ArrowDown", "ArrowDown", "ArrowUp", "Enter")
    shown.tab.wait_for_selector("dialog[open]")
    seen = shown.opened()
    assert "m77" in seen and "1 of 19" in seen and "P(pass) 0.201" in seen and "Reason 77." in seen
    assert shown.tab.locator("dialog mark.against").all_inner_texts() == ["Dear Bo"]
    assert shown.tab.url == f"{view}&open=78"
    shown.press("j")
    assert "2 of 19" in shown.opened()
    shown.close()
    assert shown.tab.evaluate("document.activeElement.className") == "row"
    assert shown.tab.url == view
    shown.press("End")
    assert shown.tab.locator(".row:focus .id").inner_text() == shown.names[-1]
    clear.click()
    shown.wait("1000 records")
    shown.tab.select_option("[name=sort]", "unsure")
    shown.tab.check("[name=verdict][value=abstain]")
    shown.wait("250 of 1000 records")
    assert shown.names[:2] == ["m3", "m7"]
    other = shown.tab.context.browser.new_page()
    other.goto(shown.tab.url)
    other.wait_for_selector(".row")
    assert other.locator(".row .id").all_inner_texts()[:2] == ["m3", "m7"], "a view has an address"
    assert other.input_value("[name=sort]") == "unsure"
    assert not shown.faults


def test_filters_and_what_a_record_opens_to(shown: OpenPage) -> None:
    votes = [
        {"verdict": v, "model": m, "seed": n, "temperature": 0.7, "reason": r, "evidence": []}
        for n, (v, m, r) in enumerate([("pass", "m:a", None), ("unreadable", "m:b", "cut off")])
    ]
    finding = {"verdict": "fail", "value": "Thrift--Agree", "character": "Ann", "reason": "Spends."}
    edit = {
        "round": 1,
        "check": "c",
        "model": "w",
        "before": "It was rude.",
        "after": "It was not.",
    }
    rich = record(
        "abstain",
        check("relevance", "abstain", votes=votes, probability=0.9999, by="final"),
        id="rich",
        dropped=["Greed--Agree"],
        contradictions=[finding],
        extraction={"credits": [1, 0.5, None], "recall": 0.75},
        edits=[edit],
        original_verdict="fail",
        original={"story": "It was rude."},
    )
    person = {"check": "polite", "by": "person", "verdict": "pass"}
    cast = [{"verdict": v, "model": "m:c", "seed": 0} for v in ("pass", "fail", "fail")]
    other = record("pass", check("polite", "fail", votes=cast), person, id="other")
    other |= {"labels": {"polite": "pass"}, "country": "Peru"}
    shown.show([rich, other])
    for name, value, names in (
        ("check", "polite", ["other"]),
        ("judge", "m:b", ["rich"]),
        ("judge", "m:c", ["other"]),
        ("only", "split&check=polite", ["other"]),
        ("answer", "unreadable&judge=m:b", ["rich"]),
        ("only", "edited", ["rich"]),
        ("only", "unlike", ["other"]),
        ("only", "person", ["other"]),
        ("label", "pass", ["other"]),
        ("from", "0,5", ["rich"]),
        ("field", "country", ["other"]),
        ("has", "peru", ["other"]),
    ):
        shown.tab.goto(f"{shown.tab.url.partition('#')[0]}#{name}={value}")
        shown.wait("1 of 2 records")
        assert shown.names == names, name
        decided = shown.tab.locator(".row .figure").inner_text() == "person"
        assert decided == (names == ["other"])
    shown.tab.evaluate("location.hash = 'open=1'")
    shown.tab.wait_for_selector("dialog[open]")
    seen = shown.opened()
    for told in (
        "as it came in: fail",
        "relevance final · P(pass) >0.999 · 2 votes: 1 pass, 1 unreadable",
        "unreadable m:b seed 1 · temperature 0.7 cut off",
        "Values dropped Greed--Agree",
        "Thrift--Agree character Ann Spends.",
        "recall 0.750 over 2 of 3 gold values; credits 1, 0.5, –",
        "Before it was rewritten",
    ):
        assert told in seen, told
    assert shown.tab.locator("dialog del").all_inner_texts() == ["rude"]
    assert not shown.faults


def test_labels_that_fewer_judges_give_are_less_sure(shown: OpenPage) -> None:
    def said(*labels: str) -> dict[str, Any]:
        votes = [
            {
                "model": f"m:{n}",
                "verdict": "answered",
                "evidence": [{"verdict": "answered", "answer": label}],
            }
            for n, label in enumerate(labels)
        ]
        return check("tone", "answered", votes=votes, counted=["warm", "rude"], answer="warm")

    casts = {"all": ("warm",) * 3, "two": ("warm", "rude", "warm")}
    shown.show([record("answered", said(*labels), id=name) for name, labels in casts.items()])
    assert shown.names == ["all", "two"]
    shown.tab.select_option("[name=sort]", "unsure")
    shown.tab.wait_for_function("document.querySelector('.row .id').innerText == 'two'")
    assert shown.names == ["two", "all"]


def test_two_runs_differences_first(shown: OpenPage) -> None:
    verdicts = [("fail", "pass", "pass"), ("fail", "pass", "abstain")]
    runs = [[mail(n, verdict) for n, verdict in enumerate(run)] for run in verdicts]
    shown.show(*runs)
    names = shown.tab.locator(".row .id").all()
    assert len({name.bounding_box()["x"] for name in names}) == 1, "names are in one line"
    assert shown.names == ["m2", "m0", "m1"] and shown.told == "3 records"
    shown.tab.locator(".row").first.click()
    assert shown.opened().count("Reason 2.") == 2 and "A pass" in shown.opened()
    chips = [" ".join(chip.split()) for chip in shown.tab.locator(".chip").all_inner_texts()]
    assert chips == ["fail 1", "abstain 1", "pass 2"], "records, not verdicts"
    shown.tab.goto(f"{shown.tab.url.partition('#')[0]}#only=differ")
    shown.wait("1 of 3 records")
    shown.show(runs[0], [mail(n, "fail", workflow="story") for n in range(3)])
    assert shown.told == "6 records", "of several kinds: none is beside another"
    assert not shown.faults


def test_a_record_that_loses_its_key_to_another_of_its_id_is_still_shown(shown: OpenPage) -> None:
    first = [record("pass", id="a", story="One."), record("fail", id="a", story="Two.")]
    shown.show(first, [record("abstain", id="a", story="Three."), *first])
    rows = sorted(shown.tab.locator(".row .verdicts").all_inner_texts())
    assert rows == ["A failB fail", "A passB pass", "A –B abstain"]


def test_a_search_finds_a_letter_in_each_of_its_forms(shown: OpenPage) -> None:
    """An accent of two characters, katakana of half width, and the Turkish capital of i."""
    words = {"caf\u00e9": "Cafe\u0301", "\u30ac\u30b9": "\uff76\uff9e\uff7d", "iyi": "\u0130yi"}
    lines = [record("fail", check(), id=typed, story=text) for typed, text in words.items()]
    shown.show([{**line, "id": f"m{n}"} for n, line in enumerate(lines)])
    for number, typed in enumerate(words):
        shown.tab.fill("[name=q]", typed)
        shown.wait("1 of 3 records")
        assert shown.names == [f"m{number}"]
        shown.tab.fill("[name=q]", "")
        shown.wait("3 records")
    assert not shown.faults


def test_answers_that_only_count_are_on_the_rows_and_tell_runs_apart(shown: OpenPage) -> None:
    def run(*tones: str) -> list[Any]:
        checks = [check("tone", "answered", answer=tone) for tone in tones]
        return [record("answered", c, id=f"m{n}") for n, c in enumerate(checks)]

    shown.show(run("warm", "warm", "cold"), run("warm", "rude", "cold"))
    assert shown.names == ["m1", "m0", "m2"], "differences first"
    rows = [
        " ".join(text.split()) for text in shown.tab.locator(".row .verdicts").all_inner_texts()
    ]
    assert ["".join(row.split()) for row in rows] == ["AwarmBrude", "AwarmBwarm", "AcoldBcold"]
    assert "runs differ" in shown.tab.inner_text("[name=only]")
    shown.tab.locator(".row").first.click()
    assert "answered tone answer warm · 1 vote" in shown.opened()
    assert not shown.faults


def test_runs_differ_in_a_check_beside_another_that_fails(shown: OpenPage) -> None:
    """A check that only one of them made is none in which they differ."""

    def run(*polite: tuple[str, float], more: str) -> list[Any]:
        two = [[check("polite", v, probability=p), check(more, "fail")] for v, p in polite]
        return [record("fail", *checks, id=f"m{n}") for n, checks in enumerate(two)]

    shown.show(
        run(("fail", 0.1), ("fail", 0.00001), more="short"),
        run(("fail", 0.2), ("pass", 0.99999), more="kind"),
        view="#only=differ",
    )
    assert shown.names == ["m1"] and shown.told == "1 of 2 records"
    assert shown.tab.inner_text(".row .figure") == "<0.001", "never rounded to 0"
    assert not shown.faults


def test_a_hostile_record_harms_nothing(shown: OpenPage) -> None:
    texts = payloads("http://127.0.0.1:9/")
    huge = record("fail", id="huge", story="<b>" + "é" * 2_500_000)
    lines = [*map(full, texts), huge, record("fail", id="long", story="word<i> " * 40_000)]
    shown.show(lines)
    for width, scheme in SCREENS:
        shown.tab.set_viewport_size({"width": width, "height": 844})
        shown.tab.emulate_media(color_scheme=scheme)
        assert shown.tab.evaluate("document.documentElement.scrollWidth") <= width
    for number, line in enumerate(lines):
        shown.tab.evaluate(f"location.hash = 'open={number + 1}'")
        shown.tab.wait_for_function(f"() => opened && opened.number === {number + 1}")
        assert shown.tab.title() == "What judge found"
        tags = "script, img, iframe, form, style, object, embed, link, meta, i, math, a[href^=java]"
        assert shown.tab.locator(f"dialog :is({tags})").count() == 0
        assert shown.tab.evaluate("document.querySelector('dialog').scrollWidth") <= width
        text = plain(line["story"].replace("\r\n", "\n"))
        seen = shown.tab.evaluate(
            "dialog.querySelectorAll('sup').forEach(one => one.remove()) || dialog.textContent"
        )
        assert text in seen or "too many to be shown" in seen
    assert not shown.faults, "nothing ran, nothing was asked for"


def test_a_judges_long_name_leaves_its_figures_in_sight(shown: OpenPage, tmp_path: Path) -> None:
    judge = calibrated("scripted:../docs/examples/a-long-way-down/mails.judge.yaml")
    (tmp_path / "report.html").write_text(calibration_page(calibration(judge)))
    shown.tab.set_viewport_size({"width": 390, "height": 844})
    shown.tab.goto((tmp_path / "report.html").as_uri())
    sizes = "table => [table.scrollWidth, table.parentElement.clientWidth]"
    wide, room = shown.tab.locator(".halves table.counts").evaluate(sizes)
    assert wide <= room


def test_print_shows_the_drawn_records(shown: OpenPage) -> None:
    shown.show([mail(n, "fail") for n in range(500)])
    shown.tab.emulate_media(media="print")
    shown.tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert len(shown.names) == 300 and shown.names[299] == "m299"
    assert not shown.tab.is_visible("#filters") and shown.tab.is_visible("#verdicts table")


def test_ten_thousand_records_fit_and_are_usable(shown: OpenPage, tmp_path: Path) -> None:
    story = "He came in, greeted Bo and said a few words about the weather of that week. " * 12
    lines = [mail(n, "fail" if n % 3 else "pass") | {"text": f"{story}{n}"} for n in range(10_000)]
    seconds = shown.show(lines)
    assert (tmp_path / "page.html").stat().st_size < min(20_000_000, MOST_BYTES)
    assert shown.told == "10000 records" and seconds < 60
    began = time.monotonic()
    shown.tab.fill("[name=q]", "week. 9999")
    shown.wait("1 of 10000 records")
    assert time.monotonic() - began < 60
    assert shown.names == ["m9999"] and not shown.faults
