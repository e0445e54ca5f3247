"""The table of docs/howto/index.md: each line typed by a new user, the models on this machine."""

from __future__ import annotations

import csv
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from loopback import Answer, Asked, Loopback, chances, says

import judge
from cli.typed import Typed
from judge.testing import assert_judged

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| (.+?) \| `(.+)` \| \[", re.M)
TABLE = (ROOT / "docs" / "howto" / "index.md").read_text("utf-8")
JOBS = {job: typed.replace("\\|", "|") for job, typed in ROW.findall(TABLE)}
EXTRAS = {"openpyxl": ".xlsx", "pyarrow": ".parquet", "pandas": "df", "sklearn": "calibrate"}
"""What a plain install does not bring, and by what of a line it is needed."""
CODES = {"a gate in CI": 1}
"""Exit codes that are not 0: two e-mails in six fail."""


def said(asked: Asked) -> Answer:
    """A fit answer: the last one of an e-mail that scolds, and where the first needs a quote."""
    if asked.body.get("logprobs"):
        return chances(Yes=-0.1, No=-2.4)
    schema = asked.body["response_format"]["json_schema"]["schema"]
    last = any(
        w in asked.prompt for w in ("told last week", "wrong again", "this claim", "personal data")
    )

    def made(part: dict[str, Any]) -> Any:
        if "$ref" in part:
            return made(schema["$defs"][part["$ref"].rpartition("/")[2]])
        if "properties" in part:
            return {name: made(kind) for name, kind in part["properties"].items()}
        if "items" in part:
            return [made(part["items"])]
        if "enum" in part:
            return part["enum"][-last]
        return None if "anyOf" in part else "So it reads."

    return says(made(schema))


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A folder with the files that the page speaks of, and the address of the server."""
    folder = tmp_path_factory.mktemp("desk")
    for name in ("mails.csv", "mails.parquet", "chats.jsonl", "answers.jsonl"):
        shutil.copy(ROOT / "docs" / "examples" / name, folder)
    shutil.copy(ROOT / "fixtures" / "stories.jsonl", folder)
    ready = {"rag": "grounded", "runs": "tool_call_right"}
    ready |= {"translations": "translation_adequate", "summaries": "summary_good"}
    for name, rubric in ready.items():
        lines = (ROOT / f"fixtures/ready/{rubric}.jsonl").read_text("utf-8").splitlines()
        (folder / f"{name}.jsonl").write_text("\n".join(lines[:3]), "utf-8")
    mails = list(csv.DictReader((folder / "mails.csv").open()))
    for number, mail in enumerate(mails):
        mail |= {"human": "no" if number % 2 else "yes", "old": "Send it.", "third": "Please."}
        mail["new"] = mail["email"]
    for name in ("labels.csv", "pairs.csv"):
        with (folder / name).open("w", newline="") as file:
            table = csv.DictWriter(file, mails[0])
            table.writeheader()
            table.writerows(mails)
    config = folder / ".config" / "judge" / "judge.toml"
    config.parent.mkdir(parents=True)
    with Loopback(said) as server:
        config.write_text(f'[servers.azure]\nurl = "{server.url}"\n')
        yield folder, server.url


def test_each_file_is_an_example_or_said_to_be_the_users_own() -> None:
    about = TABLE.partition("| job |")[0]
    read = re.sub(r" (-o|--sheet|--review) \S+", "", " ".join(JOBS.values()))
    files = set(re.findall(r" (\w+\.(?:jsonl|csv|parquet))\b", read))
    lacking = {name for name in files if not (ROOT / "docs" / "examples" / name).is_file()}
    own = about.partition("instead of")[2]
    assert "labels.csv" in lacking and not [name for name in lacking if f"`{name}`" not in own]


@pytest.mark.parametrize("job", JOBS)
def test_job(
    job: str, desk: tuple[Path, str], typed: Typed, judge_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = JOBS[job]
    for extra, sign in EXTRAS.items():
        if sign in line:
            pytest.importorskip(extra)
    folder, url = desk
    shutil.copytree(folder, typed.folder, dirs_exist_ok=True)
    given = {"HOME": str(typed.folder), "PATH": judge_path, "JUDGE_MODEL": "openai:gpt-4o-mini"}
    given |= {"OPENAI_BASE_URL": url, "VLLM_BASE_URL": url, "OPENAI_API_KEY": "none"}
    for name, content in given.items():
        monkeypatch.setenv(name, content)
    for name in ("judged.jsonl", "before.jsonl", "after.jsonl"):
        if name in line and f"-o {name}" not in line:
            assert typed("validate", "mails.csv", "--ask", "Polite?", "-o", name).returncode == 0
    if line.startswith("judge "):
        code, out, told = typed.text(*shlex.split(line)[1:])
        assert code == CODES.get(job, 0), out + told
    elif line.startswith(("cat ", "jq ", "OPENAI_BASE_URL=")):
        command = line.replace("http://localhost:11434/v1", url)
        subprocess.run(["bash", "-eo", "pipefail", "-c", command], check=True)
    else:
        names = {"judge": judge, "assert_judged": assert_judged, "text": "Thank you."}
        if "df" in line:
            names["df"] = pytest.importorskip("pandas").read_csv("mails.csv")
        eval(line, names)
