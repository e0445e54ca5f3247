"""The sheet in one file: filled in from disk in a real browser, saved, and read back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.report.pages import payloads
from tests.web.conftest import Pages
from tests.web.test_browser import SCREENS

pytestmark = pytest.mark.slow

MAILS = [
    {"id": f"m{n}", "email": f"{'Dear Ann' if n % 2 else 'Fool'}, number {n}."} for n in range(10)
]
GOLD = [
    {"id": f"m{n + 10}", **MAILS[n], "labels": {"question": "yes" if n % 2 else "no"}}
    for n in range(2)
]
ASK = ("--ask", "Is this e-mail polite?", "--on", "email", "--opt-out", "unsure")


@pytest.fixture
def sheet(pages: Pages) -> Path:
    pages.write("mails.jsonl", MAILS)
    gold = [{**one, "id": f"m{n}", "email": f"{one['email']}!"} for n, one in enumerate(GOLD, 10)]
    pages.write("gold.jsonl", gold)
    (pages.folder / "how.txt").write_text("Polite: nobody minds.")
    words = ("label", "mails.jsonl", *ASK, "--controls", "gold.jsonl", "--control-share", "0.2")
    done = pages(*words, "--instructions", "how.txt", "--sheet", "sheet.html")
    assert "wrote sheet.html: 12 rows about 10 records and 2 controls" in done.stderr, done.stderr
    assert "judge agreement sheet.*.jsonl --controls gold.jsonl" in done.stderr
    return pages.folder / "sheet.html"


def opened(context: Any, sheet: Path, who: str, faults: list[str]) -> Any:
    page = context.new_page()
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text))
    page.on("request", lambda r: faults.append(r.url) if r.url[:5] not in ("file:", "blob:") else 0)
    page.goto(sheet.as_uri())
    page.fill("#who", who)
    page.keyboard.press("Enter")
    return page


def fill(page: Any, key: Callable[[str], str], most: int = 99) -> list[str]:
    """Answer by keyboard; the texts in the order in which they came."""
    seen: list[str] = []
    while page.is_hidden("#end") and len(seen) < most:
        seen.append(page.inner_text("#texts .prose"))
        page.keyboard.press(key(seen[-1]))
    return seen


def saved(page: Any, folder: Path) -> Path:
    with page.expect_download() as download:
        page.click("#save")
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def polite(text: str) -> str:
    return "y" if "Dear" in text else "n"


def test_three_people_fill_a_sheet_and_one_is_careless(
    pages: Pages, browser: Any, sheet: Path
) -> None:
    faults: list[str] = []
    orders = []
    for who in ("ann", "bo/../x", "cy"):
        context = browser.new_context()
        page = opened(context, sheet, who, faults)
        assert "0 of 12 answered" in page.inner_text("#status")
        right = polite if who != "cy" else (lambda text: "ny"[polite(text) == "n"])
        order = fill(page, right, most=5)
        page.keyboard.press("z")
        assert page.inner_text("#texts .prose") == order[-1], "back to the last one"
        assert page.get_attribute("[aria-pressed=true]", "data-key") is not None
        page.keyboard.press("c")
        page.keyboard.type("y, n and 1 are no answers here")
        page.keyboard.press("Enter")
        page.close()  # What was answered is kept, and so is the reason that was just written.
        page = opened(context, sheet, who, faults)
        assert "5 of 12 answered" in page.inner_text("#status")
        orders.append(order + fill(page, right))
        assert len({*orders[-1]}) == 12 and page.is_visible("#end")
        assert saved(page, pages.folder).name == f"sheet.{who.replace('/../', '-')}.jsonl"
        context.close()
    assert not faults and len({*map(tuple, orders)}) == 3, "an order for each"
    files = sorted(path.name for path in pages.folder.glob("sheet.*.jsonl"))
    assert "y, n and 1 are no answers here" in {r["why"] for r in pages.lines("sheet.ann.jsonl")}
    words = ("agreement", *files, "--controls", "gold.jsonl", "--least", "0.6")
    done = pages(*words, "--records", "mails.jsonl", "-o", "m.jsonl")
    assert done.returncode == 0 and "1 of 3 annotators dropped" in done.stderr, done.stderr
    assert "cy" in done.stderr and "Cohen κ" in done.stdout and "1.00" in done.stdout
    labels = [line["labels"]["question"] for line in pages.lines("m.jsonl")]
    assert labels == ["no", "yes"] * 5


def test_gold_answers_and_verdicts_are_not_in_the_page(sheet: Path) -> None:
    text = sheet.read_text()
    data = json.loads(text.partition('id="data">')[2].partition("</script>")[0])
    assert {"yes", "no"}.isdisjoint(data["texts"]) and "labels" not in text
    assert len(data["units"]) == 12 and all(
        unit[0].keys() == data["units"][0][0].keys() for unit in data["units"]
    )
    assert "default-src 'none'" in text and "http" not in text.replace("http-equiv", "")


def test_a_saved_file_goes_on_in_another_browser(pages: Pages, browser: Any, sheet: Path) -> None:
    """Also if the browser cannot store answers, which the page says."""
    faults: list[str] = []
    page = opened(browser.new_context(), sheet, "ann", faults)
    first = fill(page, polite, most=3)
    page.keyboard.press("c")
    page.keyboard.type("skipped for now")
    page.keyboard.press("Enter")
    page.keyboard.press("s")
    assert page.input_value("#why") == ""
    path = saved(page, pages.folder)
    reasons = [(line["label"], line["why"]) for line in pages.lines(path.name) if line["why"]]
    assert reasons == [("", "skipped for now")]
    assert sum(line["label"] == "" for line in pages.lines(path.name)) == 9
    done = pages("agreement", path.name)
    assert "9 rows have no label" in done.stderr
    context = browser.new_context()
    context.add_init_script("Object.defineProperty(window, 'localStorage', {get() { throw 1; }})")
    page = context.new_page()
    page.goto(sheet.as_uri())
    (pages.folder / "other.jsonl").write_text('{"item": "m1"}\n')
    page.set_input_files("#earlier", pages.folder / "other.jsonl")
    page.wait_for_selector("#trouble:not([hidden])")
    assert "belongs to another sheet" in page.inner_text("#trouble")
    page.fill("#who", "bob")
    page.set_input_files("#earlier", path)
    page.wait_for_function(
        "() => document.getElementById('trouble').textContent.includes('of ann')"
    )
    page.fill("#who", "")
    page.set_input_files("#earlier", path)
    page.wait_for_selector("#ask:not([hidden])")
    assert "3 of 12 answered" in page.inner_text("#status")
    assert "save them before you close" in page.inner_text("#trouble")
    assert not {*first} & {*fill(page, polite)} and not faults
    again = [line["why"] for line in pages.lines(saved(page, pages.folder).name)]
    assert again.count("skipped for now") == 1


def test_the_last_answer_counts_whichever_tab_it_was_given_in(
    pages: Pages, browser: Any, sheet: Path
) -> None:
    faults: list[str] = []
    context = browser.new_context()
    one = opened(context, sheet, "ann", faults)
    one.keyboard.press("y")
    other = opened(context, sheet, "ann", faults)
    for key in "znn":  # Back to the first question, which gets another answer, and the second.
        other.keyboard.press(key)
    fill(one, lambda _: "y", most=1)
    assert "2 of 12 answered" in one.inner_text("#status"), "the second again"
    other.keyboard.press("u")
    labels = [row["label"] for row in pages.lines(saved(one, pages.folder).name) if row["label"]]
    assert sorted(labels) == ["no", "unsure", "yes"] and not faults


def test_a_digit_s_key_gives_that_digit_beside_an_opt_out(pages: Pages, browser: Any) -> None:
    pages.write("mails.jsonl", MAILS[:4])
    ask = ("--ask", "How rude is it?", "--answers", "0-3", "--opt-out", "unsure")
    pages("label", "mails.jsonl", *ask, "--on", "email", "--sheet", "s.html")
    faults: list[str] = []
    page = opened(browser.new_context(), pages.folder / "s.html", "ann", faults)
    fill(page, lambda text: text[-2])
    rows = pages.lines(saved(page, pages.folder).name)
    assert {row["item"]: row["label"] for row in rows} == {f"m{n}": str(n) for n in range(4)}
    assert not faults


def test_a_comparison_hides_the_names_and_gives_each_person_an_order(
    pages: Pages, browser: Any
) -> None:
    """People always choose the first of two, on sheets whose own columns are named like one."""
    texts = {name: [f"{name} says {n}" for n in range(12)] for name in ("gpt", "label")}
    lines = [{"nr": f"p{n}", **{name: texts[name][n] for name in texts}} for n in range(12)]
    pages.write("ab.jsonl", lines)
    words = ("--compare", "gpt,label", "--tie", "--ask", "Which is better?", "--id", "nr")
    done = pages("label", "ab.jsonl", *words, "--opt-out", "unsure", "--sheet", "s.html")
    assert done.returncode == 0, done.stderr
    faults: list[str] = []
    chosen = []
    for who in ("ann", "bo"):
        page = opened(browser.new_context(), pages.folder / "s.html", who, faults)
        buttons = page.locator("#answers button").all_inner_texts()
        assert buttons == ["answer 1 1", "answer 2 2", "tie 3", "unsure u 4"]
        assert page.locator("#texts h3").all_inner_texts() == ["answer 1", "answer 2"]
        firsts = {*fill(page, lambda _: "1")}
        rows = pages.lines(saved(page, pages.folder).name)
        column = {"gpt": "gpt", "label": "text of label"}
        assert {row[column[row["label"]]] for row in rows} == firsts
        assert {row["item"] for row in rows} == {f"p{n}" for n in range(12)}
        chosen.append([row["label"] for row in rows])
    assert not faults and chosen[0] != chosen[1] and {*chosen[0], *chosen[1]} == {"gpt", "label"}


def test_hostile_records_harm_nothing(pages: Pages, browser: Any) -> None:
    texts = payloads("http://127.0.0.1:9/")
    hostile = [{"id": texts[0], "<b>k</b>": "\n".join(texts), "__proto__": "p", "7": "</script>"}]
    hostile += [{"id": "long", "text": "<b>" + "é" * 400_000, "z": "a\u202eb\u0000c \ud800"}]
    hostile += [{"id": "rtl", "text": [{"role": "user", "content": "שלום <i>"}] * 3}]
    pages.write("hostile.jsonl", hostile)
    words = ("label", "hostile.jsonl", "--ask", texts[0], "--answers", "<b>yes</b>,no")
    done = pages(*words, "--sheet", "s.html")
    assert done.returncode == 0, done.stderr
    faults: list[str] = []
    page = opened(browser.new_context(), pages.folder / "s.html", texts[0], faults)
    shown = []
    for _ in hostile:
        shown.append(page.inner_text("#texts"))
        assert not page.query_selector("#texts b, #texts img, #texts script, #question b, bdi b")
        if page.query_selector(".rest"):
            page.click(".rest summary")
            page.wait_for_selector(".rest .rest")
            assert all(f"U+{code}" in shown[-1] for code in ("202E", "0000", "D800"))
        for width, scheme in SCREENS:
            page.set_viewport_size({"width": width, "height": 844})
            page.emulate_media(color_scheme=scheme)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.keyboard.press("1")
    path = saved(page, pages.folder)
    assert not faults and any("שלום <i>" in text for text in shown)
    assert not any("U+000D" in text for text in shown), "an end of line, as Windows has it"
    done = pages("agreement", path.name, "--records", "hostile.jsonl", "-o", "m.jsonl")
    assert done.returncode == 0, done.stderr
    assert {json.dumps(line["labels"]) for line in pages.lines("m.jsonl")} == {
        '{"question": "<b>yes</b>"}'
    }
