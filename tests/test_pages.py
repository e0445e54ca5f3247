"""The pages of docs/, typed as they say: files written, commands run, what comes out compared.

    python -m tests.test_pages [PAGE ...]     writes the pages' outputs anew; look at the diff

Each part of a page (below a `##`) runs in a folder of its own. A block of `bash` or `python` runs;
the next block of `text` is what it prints. A block that begins with `# NAME`, or comes after a line
with the name before the first `##`, is a file. The models are a server on this machine, which knows
six e-mails by heart.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import yaml

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
NAMED = re.compile(r"^`([\w./]+)`:\n\n```\w+\n(.*?)^```$", re.M | re.S)
RUN = re.compile(r"^```(bash|python)$", re.M)
VARYING = re.compile(
    r"^(judge: judging: .*|(judge: )?\d+ (records?|items?|drafts?) .*in [\d.]+ s.*"
    r"|\d+ passed in .*| +\d+ tokens read, \d+ written.*"
    r"|  no price known for .*)\n",
    re.M,
)
"""Lines of the closing summary that tell times, tokens and, at the stand-in's address, no price."""

MAILS: dict[str, tuple[str, str | None, str]] = {  # words of the record: answer, quote, reason
    "It is painted blue": ("no", None, "No word about colours."),
    "thank you for waiting": ("yes", "thank you for waiting", "It thanks her."),
    "You were told last week": ("no", "You were told last week", "It scolds the reader."),
    "lunch at one": ("yes", "I can wait if you are late", "It is patient."),
    "Your form is wrong again": ("no", "Your form is wrong again", "It blames and orders."),
    "could you please look": ("yes", "could you please look at page two", "It asks kindly."),
    "The bridge was opened in 1894": ("yes", "The bridge was opened in 1894", "The guide says so."),
    "Anna Berg built it": ("yes", "Anna Berg built it", "It says so."),
    "Will it rain in Oss": ("yes", None, "The forecast for that town and day."),
    "train from Oss to Lisk": ("no", None, "It asks for the weather, not for trains."),
    "zwanzig Minuten": ("yes", None, "Nothing is left out."),
    "halb neun": ("no", "half past nine", "Halb neun is half past eight."),
    "Will answer tomorrow": ("yes", "Will answer tomorrow", "It is short but not rude."),
}
CAPITALS = {"Peru": "Lima", "Australia": "Sydney"}


def reply(prompt: str, model: str) -> dict[str, Any]:
    """What a model says of the e-mail in the prompt; a small one finds a short answer rude."""
    for words, (answer, quote, reason) in MAILS.items():
        if words in prompt:
            if "How clear" in prompt:
                return {
                    "reason": "It says so.",
                    "answer": min(5, len((quote or "").split())),
                    "quote": None,
                }
            if model == "qwen3-8b" and words == "Will answer tomorrow":
                answer = "no"
            return {"reason": reason, "answer": answer, "quote": quote}
    for country, city in CAPITALS.items():
        if country in prompt:
            letter = re.search(rf"^([A-Z])\W+{city}", prompt, re.M)
            assert letter is not None, prompt
            return {"answer": letter[1]}
    return {"ready": "yes"}  # judge's probe for the way to ask for JSON


class Models(BaseHTTPRequestHandler):
    """OpenAI's protocol, Anthropic's, and that of docs/examples/backend.py."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        said = reply(
            json.dumps(asked, ensure_ascii=False).replace("\\n", "\n"), asked.get("model", "")
        )
        if self.path == "/shout":
            assert "JSON schema" in asked["prompt"], (
                "a server that takes no schema is told in words"
            )
        text, usage = json.dumps(said), {"input_tokens": 9, "output_tokens": 9}
        answer: dict[str, Any] = {"text": text}
        if self.path.endswith("/messages"):
            content = {"type": "tool_use", "id": "t1", "name": "reply", "input": said}
            content["name"] = asked["tools"][0]["name"]
            answer = {"id": "m1", "type": "message", "role": "assistant", "content": [content]}
            answer |= {"model": asked["model"], "stop_reason": "tool_use", "usage": usage}
        elif self.path.endswith("/completions"):
            choice: dict[str, Any] = {"index": 0, "finish_reason": "stop"}
            if asked.get("logprobs"):
                text = said.get("answer", "yes").capitalize()
                sure = 0.6 if "Will answer tomorrow" in str(asked) else 0.05
                tops = [{"token": text, "logprob": -sure}]
                tops += [{"token": "No" if text == "Yes" else "Yes", "logprob": -1 / sure}]
                choice["logprobs"] = {"content": [{**tops[0], "top_logprobs": tops}]}
            choice["message"] = {"role": "assistant", "content": text}
            answer = {"id": "c1", "object": "chat.completion", "created": 1, "choices": [choice]}
            answer |= {
                "model": asked["model"],
                "usage": {"prompt_tokens": 9, "completion_tokens": 9},
            }
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@contextlib.contextmanager
def models() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Models)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@dataclass(frozen=True)
class Shell:
    """A user's shell: the address of the models, and judge on the PATH."""

    url: str
    path: str = f"{Path(sys.executable).parent}:{os.environ['PATH']}"


def environment(folder: Path, at: Shell) -> dict[str, str]:
    """A user's shell: judge on the PATH, its own cache, packages installed into the folder."""
    url = at.url
    return os.environ | {
        "PATH": at.path,
        "HOME": str(folder),
        "JUDGE_CACHE_DIR": str(folder / "cache"),
        "OPENAI_BASE_URL": f"{url}/v1",
        "VLLM_BASE_URL": f"{url}/v1",
        "ANTHROPIC_BASE_URL": url,
        "SHOUT_URL": f"{url}/shout",
        "OPENAI_API_KEY": "none",
        "PYTHONPATH": str(folder / "site"),
        "PYTHONWARNINGS": "ignore",
    }


def shell(command: str, folder: Path, at: Shell) -> str:
    """What a person sees on the terminal.

    Raises:
        AssertionError: the command ends with another exit code than 0.
    """
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", command],
        cwd=folder,
        env=environment(folder, at),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    told = VARYING.sub("", done.stdout)
    return "".join(line.rstrip() + "\n" for line in told.splitlines())


def install(folder: Path) -> None:
    """What `pip install .` leaves behind of the folder's package, without pip and a network."""
    about = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))
    name, version = about["project"]["name"], about["project"]["version"]
    info = folder / "site" / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    points = about["project"]["entry-points"].items()
    lines = [
        f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in of.items()) for group, of in points
    ]
    (info / "entry_points.txt").write_text("".join(lines))
    for module in about["tool"]["setuptools"]["py-modules"]:
        shutil.copy(folder / f"{module}.py", folder / "site")


def parts() -> Iterator[tuple[str, str]]:
    """Every part of a page with a block: its page and heading, and its text."""
    for page in sorted(DOCS.glob("**/*.md")):
        name = page.relative_to(DOCS).with_suffix("").as_posix()
        for part in re.split(r"^(?=## )", page.read_text("utf-8"), flags=re.M):
            if BLOCK.search(part) and name not in SHOWN:
                yield f"{name}: {part.splitlines()[0].lstrip('# ')}", part


SHOWN = {"explain/shown": "tests/test_shown_page.py shows what the judge is sent"}
PARTS = dict(parts())
TYPED = [name for name, part in PARTS.items() if RUN.search(part)]


def cooked(name: str, folder: Path, at: Shell) -> str:
    """The part, with the current output of its commands."""
    shutil.copytree(ROOT / "docs" / "examples", folder, dirs_exist_ok=True)
    for file in (*(ROOT / "fixtures").glob("*.jsonl"), ROOT / "fixtures" / "judge.yaml"):
        shutil.copy(file, folder)
    page = (DOCS / f"{name.partition(':')[0]}.md").read_text("utf-8")
    for file_name, text in NAMED.findall(page.partition("\n## ")[0]):
        (folder / file_name).write_text(text, "utf-8")
    printed = ""

    def block(found: re.Match[str]) -> str:
        nonlocal printed
        language, text = found.groups()
        first, _, rest = text.partition("\n")
        if language == "text":
            return f"```text\n{printed}```"
        if language == "bash":
            if "pip install -q .\n" in text:
                install(folder)
            printed = shell(re.sub("^pip install .*", "", text, flags=re.M), folder, at)
        elif first.startswith("# "):
            file = folder / first.removeprefix("# ")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(rest.replace("http://127.0.0.1:8000", at.url), "utf-8")
        elif language == "python":
            printed = run(text, folder, name)
        return found[0]

    return BLOCK.sub(block, PARTS[name])


def run(code: str, folder: Path, name: str) -> str:
    """The output of the code, run in this process: starting Python would take a second."""
    printed = io.StringIO()
    with (
        contextlib.chdir(folder),
        patch.dict(os.environ, JUDGE_CACHE_DIR=str(folder / "cache")),
        contextlib.redirect_stdout(printed),
    ):
        exec(compile(code, f"docs/{name}", "exec"), {"__name__": "__main__"})
    return printed.getvalue()


@pytest.fixture(scope="session")
def at(judge_path: str) -> Iterator[Shell]:
    with models() as url:
        yield Shell(url, judge_path)


@pytest.mark.parametrize("name", TYPED)
def test_part(name: str, tmp_path: Path, at: Shell) -> None:
    assert cooked(name, tmp_path, at) == PARTS[name]


KEYLESS = ("ask: A q", "chats", "pipes: Q", "rag: E", "report", "tests: On", "tool", "transl")


@pytest.mark.parametrize(
    "name", [n for n in TYPED if n.startswith(tuple(f"howto/{k}" for k in KEYLESS))]
)
def test_pages_are_tried_without_a_key(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: Shell
) -> None:
    """As the first lines of docs/howto/index.md say: nothing answers but the script."""
    part, model = PARTS[name], "-m openai:gpt-4o-mini"
    monkeypatch.setitem(PARTS, name, part.replace(model, "-m scripted:mails.judge.yaml"))
    assert PARTS[name] != part
    told = cooked(name, tmp_path, Shell("http://127.0.0.1:9", at.path))
    assert told.replace("-m scripted:mails.judge.yaml", model) == part


def test_the_actions_gate_the_data(tmp_path: Path, at: Shell) -> None:
    cooked("howto/ask: A question in a file", tmp_path, at)
    cooked("howto/ci: GitHub Actions", tmp_path, at)
    (tmp_path / "judged.jsonl").unlink()
    flow = yaml.safe_load((tmp_path / ".github/workflows/data.yml").read_text("utf-8"))
    steps = [step["run"] for step in flow["jobs"]["judge"]["steps"] if "run" in step]
    assert steps[0].startswith("pip install")
    with pytest.raises(AssertionError, match="mail-2"):
        shell(steps[1], tmp_path, at)
    assert "wrote judged.html" in shell(steps[2], tmp_path, at)
    summary = shell(f"export GITHUB_STEP_SUMMARY=told.md; {steps[3]}; cat told.md", tmp_path, at)
    assert "scolds the reader" in summary


def test_the_first_run_of_the_readme(tmp_path: Path, at: Shell) -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    pairs = re.findall(r"^```bash\n(.*\n)```\n```\n((?:[^`].*\n)+)```$", text, re.M)
    assert len(pairs) == 3 and len(text.splitlines()) <= 100
    for folder in ("docs", "fixtures"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    for command, printed in pairs:
        assert shell(command, tmp_path, at) == printed


def main(*names: str) -> None:
    with models() as url:
        for name in TYPED:
            page, part = DOCS / f"{name.partition(':')[0]}.md", PARTS[name]
            if names and not name.startswith(names):
                continue
            with tempfile.TemporaryDirectory() as folder:
                try:
                    told = cooked(name, Path(folder), Shell(url))
                except AssertionError as error:
                    sys.stderr.write(f"{name}: {error}\n")
                    continue
            page.write_text(page.read_text("utf-8").replace(part, told), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
