"""The site, by Sphinx (docs/decisions/0047-sphinx.md): `make docs` writes build/site.

Pages are plain Markdown, which reads the same in a checkout. Here links to the project's own files
become links within the site, and llms.txt and llms-full.txt are made of the same pages.
"""

from __future__ import annotations

import re
from itertools import chain
from os.path import relpath
from pathlib import Path
from typing import Any

from judge.version import __version__

project = "judge"
author = "the authors of judge"
release = __version__
extensions = ["myst_parser", "sphinx_copybutton"]
exclude_patterns = ["examples"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = f"judge {release}"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_show_sphinx = False
copybutton_selector = "div:is(.highlight-bash, .highlight-sh, .highlight-python) pre"

DOCS = Path(__file__).resolve().parent
PROJECT = {
    f"project/{name.lower()}": DOCS.parent / f"{name}.md"
    for name in ("ARCHITECTURE", "CONTRIBUTING", "SECURITY", "CHANGELOG")
}
"""Pages whose text stands at the top of the checkout."""

LINK = re.compile(r"\[([^\]]*)\]\((?![a-z]+:|#)([^)#\s]+)(#[^)]*)?\)")


def markdown(page: str) -> str:
    """The page's text, with its links as the site has them."""
    here, source = DOCS / page, PROJECT.get(page, DOCS / f"{page}.md")

    def link(found: re.Match[str]) -> str:
        words, target, anchor = found.groups()
        file = (source.parent / target).resolve()
        of_site = next((DOCS / f"{name}.md" for name, at in PROJECT.items() if at == file), file)
        if of_site.is_dir() or DOCS not in of_site.parents:
            return f"{words} (`{file.relative_to(DOCS.parent)}`)" if "`" not in words else words
        return f"[{words}]({relpath(of_site, here.parent)}{anchor or ''})"

    text = LINK.sub(link, source.read_text("utf-8"))
    return text.replace("```mermaid", "```text")  # drawn elsewhere; no script of another host here


def told(page: str) -> tuple[str, str]:
    """The page's title, and the first sentence below it."""
    text = re.sub(r"(?s)<!--.*?-->", "", markdown(page))
    title = re.search(r"(?m)^# (.*)", text)
    below = text.partition(title[0] if title else "")[2]
    parts = (part.strip() for part in re.sub(r"(?ms)^```.*?^```", "", below).split("\n\n"))
    first = next((p for p in parts if p and p[0] not in "#|-`!<"), "")
    plain = " ".join(LINK.sub(r"\1", first).split())
    return title[1] if title else page, re.split(r"(?<=[.?]) ", plain)[0]


def write_llms(app: Any, error: Exception | None) -> None:
    """llms.txt names every page with its first sentence; llms-full.txt has their texts."""
    if error is not None or app.builder.name != "html":
        return
    under = app.env.toctree_includes

    def below(page: str) -> list[str]:
        return [page, *chain.from_iterable(map(below, under.get(page, ())))]

    pages = [page for page in dict.fromkeys(below("index")) if not page.startswith("decisions/")]
    lines = [f"# judge {release}\n", f"> {told('index')[1]}\n"]
    for page in pages:
        title, first = told(page)
        lines.append(f"- [{title}](_sources/{page}.md.txt){': ' if first else ''}{first}")
    Path(app.outdir, "llms.txt").write_text("\n".join(lines) + "\n", "utf-8")
    Path(app.outdir, "llms-full.txt").write_text("\n\n".join(map(markdown, pages)), "utf-8")


def setup(app: Any) -> None:
    app.connect("source-read", lambda _, page, content: content.__setitem__(0, markdown(page)))
    app.connect("build-finished", write_llms)
