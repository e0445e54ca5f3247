"""Pages and figures over hostile text in a real browser: nothing of theirs runs or is fetched."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from judge.report.plots import draw
from judge.report.text import plain
from tests.report.browser import Canary, dumped
from tests.report.pages import Seen, check, full, page, payloads, record
from tests.report.test_plots import calibration, checked, made_up, report

pytestmark = pytest.mark.slow

POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
PROBE = """<script>
const shown = verdict => [...document.querySelectorAll(".group." + verdict + " .record")]
  .filter(one => one.checkVisibility())
  .map(one => one.querySelector(".id").innerText.trim()).join();
const said = [];
const say = () => said.push(shown("fail") + "|" + shown("pass"));
const click = id => document.getElementById(id).click();
const choose = value => { document.getElementById("check").value = value; };
say();
click("show-pass"); say(); click("show-pass");
choose("1"); say(); choose("");
click("only-split"); say(); click("only-split");
click("only-edited"); say();
document.documentElement.dataset.said = said.join(" ");
</script>"""
"""Uses the page's filters and notes which records can be seen."""


@pytest.fixture
def canary() -> Iterator[Canary]:
    with Canary() as server:
        yield server


def title(dom: str) -> str:
    found = re.search(r"(?s)<title>(.*?)</title>", dom)
    return found[1] if found else ""


def hostile(canary: Canary) -> str:
    texts = payloads(canary.url)
    return page([*map(full, texts), *texts], source=texts[0])


def test_what_is_not_escaped_is_noticed(canary: Canary, tmp_path: Path) -> None:
    """Without this, a canary that never sings would prove nothing."""
    bad = tmp_path / "bad.html"
    text = payloads(canary.url)[0]
    bad.write_text(f"<title>What judge found</title><img src='{canary.url}image'>{text}")
    assert title(dumped(bad, tmp_path / "profile")) == "PWNED"
    assert {"/image", "/script"} <= set(canary.asked)


def test_nothing_of_a_record_runs_and_all_of_it_is_seen(canary: Canary, tmp_path: Path) -> None:
    made = tmp_path / "page.html"
    # Without the policy: escaping alone must hold.
    bare, found = POLICY.subn("", hostile(canary))
    assert found == 1
    made.write_text(bare, "utf-8")
    dom = dumped(made, tmp_path / "profile")
    assert title(dom) == "What judge found"
    assert canary.asked == []
    assert not re.search(r"<(script|img|iframe|object|embed|base|link|form action)\b", dom)
    text = Seen(dom).text
    for one in payloads(canary.url):
        assert text.count(plain(one.replace("\r\n", "\n"))) >= 10, one


def test_the_policy_holds_where_escaping_would_not(canary: Canary, tmp_path: Path) -> None:
    made = tmp_path / "page.html"
    inside = "".join(payloads(canary.url)[:2]) + f"<img src='{canary.url}image' onerror='x'>"
    inside += f"<style>body {{ background: url({canary.url}style) }}</style>"
    inside += f"<iframe src='{canary.url}frame'></iframe><link rel=stylesheet href='{canary.url}'>"
    made.write_text(page([record()]).replace("<main>", f"<main>{inside}"), "utf-8")
    dom = dumped(made, tmp_path / "profile")
    assert f"{canary.url}frame" in dom
    assert title(dom) == "What judge found"
    assert canary.asked == []


def test_the_filters_work_without_any_script(tmp_path: Path) -> None:
    split = [
        {"verdict": v, "model": "m", "seed": n, "temperature": 0.7}
        for n, v in enumerate(("fail", "pass", "fail"))
    ]
    edit = {"round": 1, "check": "c", "model": "m", "before": "a", "after": "b"}
    lines = [
        record("fail", check("first"), check("second", "fail"), id="A"),
        record("fail", check("first", "fail", votes=split), check("second"), id="B"),
        record("pass", check("first"), check("second"), id="C"),
        record("pass", check("first"), edits=[edit], id="D"),
    ]
    made = tmp_path / "page.html"
    made.write_text(POLICY.sub("", page(lines)).replace("</body>", f"{PROBE}</body>"), "utf-8")
    dom = dumped(made, tmp_path / "profile")
    assert 'data-said="A,B|C,D A,B| A| B| |D"' in dom


def test_names_in_figures_are_text(canary: Canary, tmp_path: Path) -> None:
    found = made_up(items=12)
    texts = payloads(canary.url)[:24:3]
    judges = [report(found, model=text) for text in texts]
    paths = draw(calibration(checked(*judges, check=texts[0])), tmp_path)
    figures = [path.read_text("utf-8") for path in paths if path.suffix == ".svg"]
    assert len(figures) == 2 * len(texts)
    # As a page would hold them: read by HTML's rules, which are looser than XML's.
    inline = "".join(figure[figure.index("<svg") :] for figure in figures)
    made = tmp_path / "figures.html"
    made.write_text(f"<meta charset=utf-8><title>Figures</title><body>{inline}", "utf-8")
    dom = dumped(made, tmp_path / "profile")
    assert title(dom) == "Figures"
    assert canary.asked == []
    assert not re.search(r"<(script|img|iframe|object|embed|base|animate)\b", dom)
    assert dom.count("&lt;script&gt;") > 5
