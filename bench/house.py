"""The size and the paths of the code: each row of docs/evidence/house.md, measured in this run.

    python bench/house.py [--json] [--names] [--root DIR]

`before` is the figure of commit 3d4ab6f as it was counted by hand, `target` what was agreed on,
`now` what this run measures; `--names` prints what was counted, row by row. Our code is judge/ and
graphs/; a row that runs `judge` runs the tree at DIR (default: this one) in a new process.

How each row counts:

- types: classes of ours that hold the text of the one record or of its reply, seen while
  `judge validate --ask` runs under `sys.setprofile`: at every return from a function of ours, the
  locals and the value returned are searched. A class holds the text if it is in its fields, in
  their containers, or in the fields of another such class; a class that is no dataclass, named
  tuple or pydantic model is a machine, not a form of the record, and does not count. `bytes` counts
  twice, as the line read and the line written.
- frames: functions of ours on the stack where the first function of aiohttp's client is called.
- functions entered: those of ours that are called more often for two records than for one.
- loaded: modules of ours in `sys.modules` after `judge validate --ask` on the six mails.
- type names: names bound to a class or to a type alias (`X = A | B`, `X = Callable[...]`,
  `type X = ...`) in more than one place; TypeVar and NewType do not count.
- variables: names bound by assignment, `for`, `with`, `:=`, arguments and fields, once in each
  scope; the share that is in `PARTICIPLES` below.
- output line: functions that look up the key "judge" (`x["judge"]`, `.get("judge")`, `.pop`,
  `"judge" in x`, or a constant with this value).
- papers: mentions of a paper, its values or stories (`PAPER_WORDS`) in files of the core.
- import circles: strongly connected groups of modules, imports inside functions included.
- CPU: user and system seconds of the whole process, the median of five, by turns; all code
  compiled beforehand, as an installed package is.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from canned_server import serving
from house_sources import OUTSIDE, Tree

HERE = Path(__file__).resolve()
MARK = "zq7mark"
"""A word in the record and in the quote of its reply: an object with it holds one of the two."""

MAIL = f"Dear Ms Ito, thank you for waiting {MARK}. The part comes on Monday."
REPLY = {"reason": "It thanks her.", "answer": "yes", "quote": f"thank you for waiting {MARK}"}
_TRANSPORT = re.compile(r"/(aiohttp|httpx2?|openai)/")
_LARGE = 100
"""Most parts of a container that are searched."""

ASK = ("--ask", "Is this e-mail polite?", "--on", "email")


class Trace:
    """Traces our functions while records are judged; `hook` is for `sys.setprofile`."""

    def __init__(self, root: Path) -> None:
        self._ours = (f"{root}/judge/", f"{root}/graphs/")
        self._root = root
        self.calls: Counter[CodeType] = Counter()
        self.types: set[type] = set()
        self.stack: list[CodeType] = []

    def hook(self, frame: FrameType, event: str, value: Any) -> None:
        code = frame.f_code
        if event == "call" and _is_request(code):
            self.stack = max(self.stack, self._above(frame), key=len)
        if not code.co_filename.startswith(self._ours) or code.co_name == "<module>":
            return
        if event == "call":
            self.calls[code] += 1
        elif event == "return":
            self._holds([*frame.f_locals.values(), value], {})

    def _above(self, frame: FrameType) -> list[CodeType]:
        found, above = [], frame.f_back
        while above is not None:
            if above.f_code.co_filename.startswith(self._ours):
                found.append(above.f_code)
            above = above.f_back
        return found

    def _holds(self, value: Any, seen: dict[int, bool]) -> bool:
        """Whether a value holds the text; adds our classes that do to `types`."""
        if isinstance(value, str):
            return MARK in value
        if isinstance(value, bytes):
            return MARK.encode() in value
        if id(value) in seen:
            return seen[id(value)]
        seen[id(value)] = False
        kind = type(value)
        if kind in (dict, list, tuple, set, frozenset):
            parts = list(value.values() if kind is dict else value)[:_LARGE]
        elif kind.__module__.startswith("judge"):
            parts = [getattr(value, name, None) for name in _fields(kind)]
        else:
            return False
        seen[id(value)] = holds = sum(self._holds(part, seen) for part in parts) > 0
        if holds and kind.__module__.startswith("judge"):
            self.types.add(kind)
        return holds

    def report(self) -> dict[str, Any]:
        modules = [m for n, m in sys.modules.items() if n.split(".")[0] == "judge"]
        files = {str(m.__file__) for m in modules if getattr(m, "__file__", None)}
        return {
            "types": sorted(f"{kind.__module__}.{kind.__qualname__}" for kind in self.types),
            "stack": [self._name(code) for code in self.stack],
            "calls": {self._name(code): count for code, count in self.calls.items()},
            "loaded": {file: Path(file).read_text("utf-8").count("\n") for file in sorted(files)},
        }

    def _name(self, code: CodeType) -> str:
        return f"{Path(code.co_filename).relative_to(self._root)}:{code.co_qualname}"


def trace(root: Path, words: Sequence[str]) -> None:
    """Run `judge WORDS` in this process under a trace; write its report to trace.json."""
    import threading

    from judge.cli import main

    traced, sys.argv = Trace(root), ["judge", *words]
    threading.setprofile(traced.hook)
    sys.setprofile(traced.hook)
    try:
        main()
    except SystemExit as end:
        assert not end.code, end.code
    finally:
        sys.setprofile(None)
    Path("trace.json").write_text(json.dumps(traced.report()))


def _fields(kind: type) -> Sequence[str]:
    """The fields of a dataclass, a pydantic model or a named tuple; () for any other class."""
    for name in ("__dataclass_fields__", "model_fields", "_fields"):
        if fields := getattr(kind, name, None):
            return list(fields)
    return ()


def _is_request(code: CodeType) -> bool:
    names = ("_request", "request", "send")
    return code.co_name in names and bool(_TRANSPORT.search(code.co_filename))


class Runs:
    """Runs `judge` in a folder, with a server that gives one reply to everything."""

    def __init__(self, root: Path, folder: Path, url: str) -> None:
        python = root / ".venv" / "bin" / "python"
        self._python = str(python) if python.exists() else sys.executable
        self.root, self._folder = root, folder
        free = {k: v for k, v in os.environ.items() if not k.startswith(("JUDGE_", "OPENAI_"))}
        self._env = {**free, "OPENAI_BASE_URL": url, "COLUMNS": "80", "JUDGE_CACHE_DIR": "cache"}
        # Else an installed tree would run, and none of its functions count.
        self._env["PYTHONPATH"] = str(root)
        # In some environments Python writes no bytecode, and would compile our files at each start.
        self._env |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder / "pyc")}
        for name, count in (("one.jsonl", 1), ("two.jsonl", 2)):
            lines = (json.dumps({"email": f"{MAIL} {number}"}) + "\n" for number in range(count))
            (folder / name).write_text("".join(lines))

    def traced(self, *words: str) -> Any:
        self._run(str(HERE), "--root", str(self.root), "--trace", "validate", *words, "-q")
        return json.loads((self._folder / "trace.json").read_text())

    def cpu(self, *words: str) -> float:
        """CPU seconds of one process."""
        before = os.times()
        self._run(*words)
        after = os.times()
        system = after.children_system - before.children_system
        return after.children_user - before.children_user + system

    def beside(self, ours: Sequence[str], imports: str) -> tuple[float, float]:
        """CPU milliseconds of a command, and their ratio to those of the imports alone."""
        self._run(*ours)
        self._run("-c", f"import {imports}")
        pairs = [(self.cpu(*ours), self.cpu("-c", f"import {imports}")) for _ in range(5)]
        mine, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
        return 1000 * mine, mine / theirs

    def help(self, *words: str) -> str:
        return self._run("-m", "judge", *words, "--help")

    def _run(self, *words: str) -> str:
        done = subprocess.run(
            [self._python, *words], cwd=self._folder, env=self._env, text=True, capture_output=True
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(words)}: exit {done.returncode}: {done.stderr[-2000:]}")
        return done.stdout


def rows(tree: Tree, runs: Runs) -> Iterator[tuple[str, str, str, str, object]]:
    """Row, before, target, now, and the names behind it."""
    one = runs.traced("one.jsonl", *ASK, "-m", "openai:canned", "--no-cache")
    two = runs.traced("two.jsonl", *ASK, "-m", "openai:canned", "--no-cache")
    mails = str(tree.root / "docs" / "examples" / "mails.csv")
    six = runs.traced(mails, *ASK, "-m", f"scripted:{mails.removesuffix('csv')}judge.yaml")
    entered = sorted(Counter(two["calls"]) - Counter(one["calls"]))
    entered = [name for name in entered if "<" not in name.split(".")[-1]]
    files = {name.split(":")[0] for name in entered}
    stack = {name.split(":")[0] for name in one["stack"]}
    yield "types that a record passes through", "21", "9", f"{len(one['types']) + 2}", one["types"]
    yield (
        "frames above the model call",
        "27 in 13 files",
        "14 in 7",
        f"{len(one['stack'])} in {len(stack)} files",
        one["stack"],
    )
    yield (
        "functions entered to judge a record",
        "203 in 28 files",
        "90 in 14",
        f"{len(entered)} in {len(files)} files",
        entered,
    )
    lines = sum(six["loaded"].values())
    yield (
        "modules loaded on six mails",
        "91, 14,536 lines",
        "50",
        f"{len(six['loaded'])}, {lines:,} lines",
        sorted(six["loaded"]),
    )
    names = tree.type_names()
    yield "type names that mean two things", "42", "0", f"{len(names)}", names
    share, which = tree.variables()
    yield (
        "variables named by a participle or pronoun",
        "10 to 13 %",
        "3 %",
        f"{100 * share:.1f} %",
        which.most_common(),
    )
    readers = tree.line_readers()
    yield (
        "places that read the output line",
        "14 in 12 files",
        "1",
        f"{len(readers)} in {len({place.split(':')[0] for place in readers})} files",
        readers,
    )
    papers = tree.papers()
    yield "mentions of papers in the core", "289", "0", f"{papers.total()}", papers.most_common()
    for name, parts, before, target in (
        ("judge and graphs", ("core", *OUTSIDE), "28,344 in 164 files", "24,000"),
        ("core", ("core",), "", "16,000"),
        ("papers", ("papers",), "", "3,500"),
        ("local", ("local",), "", "1,500"),
        ("cluster", ("cluster",), "", "400"),
        ("graphs", ("graphs",), "", "1,000"),
    ):
        count, number = tree.lines(*parts)
        yield f"lines: {name}", before, target, f"{count:,} in {number} files", []
    cached = ["-m", "judge", "validate", "one.jsonl", *ASK, "-m", "openai:canned", "-q"]
    ms, times = runs.beside(cached, "typer, rich, pydantic")
    yield (
        "CPU of a cached record, beside typer, rich, pydantic",
        "900 ms, 13 times",
        "4 times",
        f"{ms:.0f} ms, {times:.1f} times",
        [],
    )
    ms, times = runs.beside(["-m", "judge", "--help"], "typer, rich")
    yield (
        "CPU of judge --help, beside typer, rich",
        "3.4 times",
        "2 times",
        f"{ms:.0f} ms, {times:.1f} times",
        [],
    )
    text = runs.help("validate")
    options = set(re.findall(r"^\W*(?:-\w,? )?(--[a-z][\w-]*)", text, re.MULTILINE))
    yield (
        "judge validate --help",
        "57 options, 147 lines",
        "70 lines",
        f"{len(options)} options, {text.count(chr(10))} lines",
        sorted(options),
    )
    circles = tree.circles()
    yield "import circles", "3", "0", f"{len(circles)}", circles


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="the table and its parts as JSON")
    parser.add_argument("--names", action="store_true", help="also what each row counted")
    parser.add_argument("--root", type=Path, default=HERE.parents[1], help="the checkout")
    parser.add_argument("--trace", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    root = chosen.root.resolve()
    if chosen.trace:
        return trace(root, chosen.trace)
    message = {"role": "assistant", "content": json.dumps(REPLY)}
    ready = {"role": "assistant", "content": json.dumps({"ready": "yes"})}
    route = {"judge": [('"Ready"', ready), ("", message)]}
    with tempfile.TemporaryDirectory() as folder, serving(route) as server:
        runs = Runs(root, Path(folder), f"{server.url}/judge/v1")
        table = list(rows(Tree(root), runs))
    if chosen.json:
        keys = ("row", "before", "target", "now", "names")
        print(json.dumps([dict(zip(keys, row, strict=True)) for row in table], indent=1))
        return None
    print("| | before | target | now |\n|---|---|---|---|")
    for name, before, target, now, names in table:
        print(f"| {name} | {before} | {target} | {now} |")
        if chosen.names:
            print("\n".join(f"    {one}" for one in names))  # type: ignore[attr-defined]
    return None


if __name__ == "__main__":
    main()
