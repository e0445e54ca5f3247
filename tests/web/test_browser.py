"""People at the pages, in a real browser: answers by keyboard, kills, hostile records."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest

from tests.report.pages import payloads
from tests.web.conftest import ASK, Pages

pytestmark = pytest.mark.slow

MAILS = [
    {"id": f"m{n}", "email": f"{'Dear Ann' if n % 2 else 'Fool'}, number {n}."} for n in range(20)
]
SCREENS = [(width, scheme) for width in (390, 1440) for scheme in ("light", "dark")]


def opened(browser: Any, address: str, faults: list[str], width: int = 1440) -> Any:
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text))
    page.goto(address)
    return page


def press(page: Any, keys: str) -> None:
    """Press each key and wait for the question that follows, or the one before."""
    for key in keys:
        page.evaluate("document.querySelector('main > *').id = 'before'")
        page.keyboard.press(key)
        page.wait_for_selector("#before", state="detached")


def asked(page: Any) -> str:
    return str(page.inner_text("main h2").removeprefix("Record "))


def right(page: Any) -> str:
    return "y" if "Dear Ann" in page.inner_text(".material") else "n"


def script(pages: Pages, name: str, why: str, answer: str, quote: str | None = None) -> None:
    """A scripted judge that answers this about mails to Ann, and no about others."""
    reply = {"quote": quote, "reason": why, "answer": answer}
    rude = {"quote": None, "reason": "Rude.", "answer": "no"}
    replies = [{"when": {"contains": "Dear"}, "reply": reply}, {"reply": rude}]
    (pages.folder / name).write_text(json.dumps({"replies": replies}))


def test_two_people_label_by_keyboard_through_a_kill(pages: Pages, browser: Any) -> None:
    pages.write("mails.jsonl", MAILS)
    label = ("label", "mails.jsonl", *ASK, "-o", "labels.jsonl", "--annotator")
    faults: list[str] = []
    process, address = pages.start(*label, "ann")
    page = opened(browser, address, faults)
    first = asked(page)
    press(page, "u")
    assert asked(page) != first
    press(page, "z")
    assert asked(page) == first and "You took back unsure" in page.inner_text("main")
    page.keyboard.press("c")
    page.keyboard.type("no y or n is an answer here")
    page.keyboard.press("Enter")
    for _ in range(8):
        press(page, right(page))
    process.send_signal(signal.SIGKILL)
    process.wait()
    page.keyboard.press("y")
    page.wait_for_selector("#trouble:not([hidden])")
    assert "all earlier ones were" in page.inner_text("#trouble")
    written = pages.lines("labels.jsonl")
    assert len(written) == 10, "a line an answer, one taken back"
    assert written[2]["annotators"]["ann"]["why"] == {"question": "no y or n is an answer here"}
    assert not [fault for fault in faults if "ERR_CONNECTION_REFUSED" not in fault]
    for who in ("ann", "bo"):
        process, address = pages.start(*label, who)
        page = opened(browser, address, faults)
        assert f"{8 if who == 'ann' else 0} of 20 answered" in page.inner_text("main")
        while page.query_selector(".ask"):
            answer = right(page)
            press(page, "ny"[answer == "n"] if (who, asked(page)) == ("bo", first) else answer)
        told = page.inner_text("main")
        assert "judge calibrate labels.jsonl --ask 'Is this e-mail polite?' --on email" in told
        page.get_by_role("button", name="Finish").click()
        assert process.wait(60) == 0 and process.stderr is not None
        assert "20 of 20 questions answered" in process.stderr.read()
    assert "ann, bo: 20 questions answered by both (question), the same answer 95.0%" in told
    assert "κ 0.90" in told
    script(pages, "j.yaml", "Thanks.", "yes")
    done = pages("calibrate", "labels.jsonl", *ASK, "-m", "scripted:j.yaml", "--json")
    assert done.returncode == 0, done.stderr
    (check,) = json.loads(done.stdout)["checks"]
    final = check["judges"][0]["uncalibrated"]
    assert (check["items"], final["without_reference"]) == (20, 1), "people differ about one"
    assert final["accuracy"]["value"] == 1 and final["accuracy"]["n"] == 19


def test_a_double_click_answers_once_and_keys_work_on_other_keyboards(
    pages: Pages, browser: Any
) -> None:
    pages.write("mails.jsonl", MAILS[:4])
    faults: list[str] = []
    page = opened(browser, pages.start("label", "mails.jsonl", *ASK, "-o", "l.jsonl")[1], faults)
    box = page.get_by_role("button", name="yes").bounding_box()
    for count in (1, 2):
        page.mouse.click(box["x"] + 9, box["y"] + 9, click_count=count)
        page.wait_for_selector("text=1 of 4 answered")
    arabic, french = {"key": "غ", "code": "KeyY"}, {"key": "é", "code": "Digit2"}
    for number, keys in enumerate((arabic, french), 2):
        page.evaluate("keys => document.dispatchEvent(new KeyboardEvent('keydown', keys))", keys)
        page.wait_for_selector(f"text={number} of 4 answered")
    given = [[*line["labels"]["question"].values()] for line in pages.lines("l.jsonl")]
    assert given == [["yes"], ["yes"], ["no"]] and not faults


def test_a_review_turns_an_abstention_into_a_persons_pass(pages: Pages, browser: Any) -> None:
    pages.write("mails.jsonl", MAILS[:2])
    script(pages, "a.yaml", "A kind word.", "yes", quote="Dear Ann")
    script(pages, "b.yaml", "Curt.", "no")
    run = ("validate", "mails.jsonl", *ASK, "-m", "scripted:a.yaml", "-m", "scripted:b.yaml")
    run += ("-o", "out.jsonl", "--fail-under", "0.5")
    assert pages(*run).returncode == 1
    faults: list[str] = []
    process, address = pages.start("review", "out.jsonl", "--annotator", "ann")
    page = opened(browser, address, faults)
    seen = page.inner_text("main")
    assert asked(page) == "m1" and "0 of 1 answered" in seen and "Curt." in seen
    assert page.inner_text("mark") == "Dear Ann"
    page.keyboard.press("c")
    page.keyboard.type("She is greeted.")
    page.keyboard.press("Escape")
    press(page, "y")
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert "a person" not in (pages.folder / "out.jsonl").read_text()
    done = pages("review", "out.jsonl")
    assert "nothing is open" in done.stderr, "what the killed page left is written first"
    check = pages.lines("out.jsonl")[1]["judge"]["checks"][-1]
    assert (check["by"], check["verdict"]) == ("person", "pass")
    assert check["reason"] == "a person says yes: She is greeted."
    assert pages(*run, "--resume").returncode == 0, "the gate counts it"
    process, address = pages.start("review", "out.jsonl", "--failed")
    page = opened(browser, address, faults)
    assert asked(page) == "m0"
    press(page, "n")
    page.get_by_role("button", name="Finish").click()
    assert process.wait(60) == 0 and not faults
    assert [line["judge"]["verdict"] for line in pages.lines("out.jsonl")] == ["fail", "pass"]
    assert pages.lines("out.jsonl")[0]["judge"]["checks"][-1]["by"] == "person"


def test_a_hostile_record_harms_nothing(pages: Pages, browser: Any) -> None:
    """Nor does a page of another origin that knows the address."""
    texts = payloads("http://127.0.0.1:9/")
    hostile = [{"id": texts[0], "email": "\n".join(texts)}]
    hostile += [{"id": "long", "email": "<b>" + "é" * 2_600_000}]
    hostile += [{"id": "rtl", "email": [{"role": "user", "content": "שלום <i>"}] * 3}]
    pages.write("hostile.jsonl", hostile)
    label = ("label", "hostile.jsonl", "--ask", texts[0], "--on", "email", "--answers")
    _, address = pages.start(*label, "<b>yes</b>,no", "-o", "labels.jsonl")
    faults: list[str] = []
    page = opened(browser, address, faults)
    for _ in hostile:
        assert page.title() == "Label records"
        tags = "main script, main img, main b:not(kbd b), main iframe, main form, main style"
        assert page.locator(f"{tags}, .material i").count() == 0
        for width, scheme in SCREENS:
            page.set_viewport_size({"width": width, "height": 844})
            page.emulate_media(color_scheme=scheme)
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, f"{asked(page)} is {wide} wide on {width}"
        press(page, "1")
    assert not faults
    assert [len(line["labels"]) for line in pages.lines("labels.jsonl")] == [1, 1, 1]
    other = browser.new_page()
    other.goto("data:text/html,<h1>elsewhere</h1>")
    send = """async address => {
      const how = { method: "POST", body: JSON.stringify({ question: 0, answer: 1, why: "" }) };
      const json = { "Content-Type": "application/json" };
      for (const more of [{ headers: json }, { mode: "no-cors" }])
        await fetch(address + "answer", { ...how, ...more }).catch(() => 0);
    }"""
    other.evaluate(send, address)
    assert len(pages.lines("labels.jsonl")) == 3
