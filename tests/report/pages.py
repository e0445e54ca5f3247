"""Judged lines made by hand, and the page about them, read by an HTML parser."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html.parser import HTMLParser
from typing import Any

from judge.records import Problem, Record
from judge.records.lines import Lines
from judge.report.page import render
from judge.report.text import UNSEEN
from judge.run.description import RunDescriptions

VOID = frozenset({"meta", "input", "br", "img", "link", "hr", "path", "rect"})

PAYLOADS = (
    "<script>{js}</script>",
    "</style></title></textarea></select></table></details><script>{js}</script>",
    "<!--><script>{js}</script>",
    "<!--",
    "<![CDATA[<script>{js}</script>",
    "<img/src={url}/onerror={js}>",
    "\"><svg onload='{js}'>",
    "'><svg/onload='{js}'>",
    "<math><mtext><table><mglyph><style><img src={url} onerror='{js}'>",
    "<iframe srcdoc='<script>{js}</script>' src='{url}'></iframe>",
    "<object data='{url}'></object><embed src='{url}'><link rel=stylesheet href='{url}'>",
    "<style>@import '{url}'; body {{ background: url({url}) }}</style>",
    "<meta http-equiv=refresh content='0;url={url}'><base href='{url}'>",
    "<form action='{url}'><button>Go</button></form>",
    "<a href='javascript:{js}'>here</a>",
    "&lt;script&gt;{js}&lt;/script&gt;",
    "\\u003cscript\\u003e{js}\\u003c/script\\u003e",
    "<scr\x00ipt>{js}</scr\x00ipt>",
    "\x1b[31m\x07\x08\x7f\x9b31m",
    "\u202etpircs\u202c \u2066\u2067\u2069 \u200b\u2060\ufeff",
    "a\ud800b\udfffc\U000e0068",
    "{{{{ ''.__class__.__mro__ }}}} {{% for x in y %}} {{# comment #}} ${{7*7}} <%= 7*7 %>",
    '" onmouseover="{js}" x="',
    "' onmouseover='{js}' x='",
    "\r\n\r\nHTTP/1.1 200 OK\r\n\u2028{js}",
    "<noscript><xmp><plaintext>",
)
"""Texts that would act if a page let them: `{js}` is what they run, `{url}` what they ask for."""


def payloads(url: str) -> list[str]:
    """Each payload with a script that a browser test would notice."""
    script = f'document.title="PWNED";fetch("{url}script")'
    return [one.format(js=script, url=url) for one in PAYLOADS]


def check(name: str = "relevance", verdict: str = "pass", **more: Any) -> dict[str, Any]:
    evidence = more.pop("evidence", [])
    vote = {"model": "m:a", "seed": 0, "temperature": 0.0, "verdict": verdict, "evidence": evidence}
    votes = [] if verdict == "skipped" else [vote]
    return {"check": name, "verdict": verdict, "votes": votes, **more}


def judged(verdict: str = "pass", *checks: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "verdict": verdict,
        "workflow": "norm",
        "checks": list(checks),
        "edits": [],
        "usage": {"replies": 1, "input_tokens": 10, "output_tokens": 2, "cost_usd": None},
        "fingerprint": "f1",
    }
    return made | more


def record(verdict: str = "pass", *checks: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """An output line: fields of the record and of its judgement, told apart by name."""
    own = {"id": "n1", "rule_of_thumb": "Greet people.", "story": "He comes in and greets Bo."}
    fields = {key: more.pop(key) for key in own if key in more}
    return {**own, **fields, "judge": judged(verdict, *checks, **more)}


def full(text: str) -> dict[str, Any]:
    """A line that holds `text` wherever a line can hold a text."""
    keys = ("value", "character", "quote", "answer", "reason")
    finding = {"verdict": "fail", "probability": 0.25, **dict.fromkeys(keys, text)}
    vote = {"verdict": "fail", "model": text, "seed": 1, "temperature": 0.7, "reason": text}
    vote |= {"evidence": [finding]}
    edit = {"round": 1, "check": text, "character": text, "values": [text], "model": text}
    return {
        "id": text,
        "story": f"It begins. {text} It ends. And it goes on for as long as prose takes to be set.",
        text: text,
        "values": [text, text],
        "nested": {"a": [{"b": text}]},
        "judge": judged(
            "fail",
            check(text, "fail", votes=[vote], reason=text),
            workflow=text,
            reason=text,
            edits=[{**edit, "before": text, "after": ""}, {**edit, "before": "", "after": text}],
            original={"story": text, text: [text]},
            dropped=[text],
            contradictions=[finding],
            fingerprint=text,
            error={"type": text, "message": text, "line": 3, "field": text},
        ),
    }


def items(lines: Iterable[Mapping[str, Any] | str], source: str = "out.jsonl") -> Iterable[Record]:
    """The lines as a reader gives them; a text is one that cannot be read."""
    for number, line in enumerate(lines, 1):
        if isinstance(line, str):
            yield Record.unreadable(source, number, Problem(f"not JSON: {line}"), line)
        else:
            yield Record(source, number, dict(line))


def page(lines: Iterable[Mapping[str, Any] | str], limit: int = 200, source: str = "o") -> str:
    told = [line["judge"] for line in lines if isinstance(line, Mapping) and "judge" in line]
    known = {one.get("fingerprint") or "": {"judge": [one.get("fingerprint")]} for one in told}
    return render(
        Lines(items(lines, source), [source]),
        limit=limit,
        described=RunDescriptions.from_json(known),
    )[0]


def plain(text: str) -> str:
    """The text as the page shows it, with invisible characters as code points."""
    return UNSEEN.sub(lambda found: f"U+{ord(found[0]):04X}", text)


class Seen(HTMLParser):
    """What stands on a page: texts, and every element with its attributes.

    `text` is all text but style, script and packed records.
    """

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.comments: list[str] = []
        self.inline = {"style": "", "script": "", "data": ""}
        self._texts: list[str] = []
        self._open: list[tuple[str, str]] = []
        self.feed(html)
        self.close()

    @property
    def text(self) -> str:
        return "".join(self._texts)

    @property
    def words(self) -> str:
        """The text with every stretch of white space as one blank."""
        return re.sub(r"\s+", " ", self.text)

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append((tag, dict(attrs).get("id") or ""))
        if tag in ("td", "th", "p", "li", "dt", "dd", "div", "h3", "h4", "summary", "tr"):
            self._texts.append("\n")

    def handle_startendtag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self._open, f"</{tag}> closes nothing"
            assert self._open[-1][0] == tag, f"</{tag}> closes {self._open[-1][0]}"
            self._open.pop()

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def handle_data(self, data: str) -> None:
        tag, name = self._open[-1] if self._open else ("", "")
        if tag in self.inline:
            self.inline["data" if name == "data" else tag] += data
        else:
            self._texts.append(data)


def entries(html: str) -> list[dict[str, Any]]:
    """The records that the page's script draws."""
    packed = base64.b64decode(Seen(html).inline["data"])
    return [json.loads(line) for line in zlib.decompress(packed).decode().split("\n")[1:-2]]


def leaves(content: Any) -> Iterator[str]:
    """All texts in it, also the names of fields."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, Mapping):
        yield from (text for pair in content.items() for part in pair for text in leaves(part))
    elif isinstance(content, list):
        yield from (text for part in content for text in leaves(part))


def rows(html: str, heading: str | None) -> list[list[str]]:
    """The rows of the first table behind a heading (None: of all), each cell's text in one line."""
    table = html[html.index(f"<h2>{heading}</h2>") if heading else 0 :]
    table = table[table.index("<table") : table.index("</table>")]
    found = []
    for row in re.findall(r"(?s)<tr>(.*?)</tr>", table):
        cells = re.findall(r"(?s)<t[hd][^>]*>(.*?)</t[hd]>", row)
        found.append([Seen(f"<div>{cell}</div>").words.strip() for cell in cells])
    return found
