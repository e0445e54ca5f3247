"""Pages over hostile text in a real browser: nothing of theirs runs or is fetched."""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.report.pages import Seen, check, full, page, payloads, plain, record

pytestmark = pytest.mark.slow

POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
PROBE = """<script>
const shown = verdict => [...document.querySelectorAll(".group." + verdict + " .record")]
  .filter(one => one.checkVisibility())
  .map(one => one.querySelector(".id").innerText.trim()).join();
const said = [];
const say = () => said.push(shown("fail") + "|" + shown("pass"));
const click = id => document.getElementById(id).click();
say();
click("show-pass"); say(); click("show-pass");
click("only-split"); say(); click("only-split");
click("only-edited"); say();
document.documentElement.dataset.said = said.join(" ");
</script>"""
"""Uses the page's filters and notes which records can be seen."""


NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Time in the page runs as fast as the page does, so that what waits for a moment happens.
    "--virtual-time-budget=2000",
)


def dumped(page: Path, folder: Path) -> str:
    """The document that the browser makes of a page when everything in it has run."""
    program = next((found for name in NAMES if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is installed")
    words = [program, *FLAGS, f"--user-data-dir={folder}", "--dump-dom", page.as_uri()]
    done = subprocess.run(words, capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-2000:]
    return done.stdout.decode("utf-8")


@dataclass
class Canary:
    """A server on 127.0.0.1 that answers nothing of use and remembers every path asked for."""

    url: str
    asked: list[str]


@pytest.fixture
def canary() -> Iterator[Canary]:
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(204)
            self.end_headers()

        do_POST = do_HEAD = do_OPTIONS = do_GET  # noqa: N815

        def log_message(self, *words: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Canary(f"http://127.0.0.1:{server.server_port}/", asked)
        server.shutdown()


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
    assert 'data-said="A,B|C,D A,B| B| |D"' in dom
