"""A package's own kind of records, with its workflow and settings; and packages that are broken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from judge.graphs.settings import NormSettings
from pydantic import create_model

from judge.options import Options
from judge.questions.rubric import Rubric
from judge.settings import CoreSettings

BACKEND = """import asyncio
from judge.backends.base import Backend
class mine(Backend):
    def __init__(self, name): {0}
    def identity(self): return {{"model": "m"}}
    async def complete(self, call, mode): {1}"""
ASKED = "validate r.jsonl --no-cache --ask a? -m mine:m"

SETTING = """from judge.options import Options, judging
class mine(Options):
    {0}: int = judging("Mine.", default=1{1})"""

MODULE = '''
from judge.options import Options, judging
from judge.records import RecordKind
from judge.records.kinds import text
from judge.workflows import State, Workflow
from langgraph.graph import END, START, StateGraph

RECIPE = RecordKind(fields={"dish": text, "steps": text}, needed=("dish", "steps"))

class Recipes(Options):
    """Requirements on recipes."""
    least_words: int = judging("Skip shorter recipes.", default=3, ge=0)

async def cooking(state: State) -> None:
    work = state["work"]
    if len(work.record.texts["steps"].split()) < work.context.settings.least_words:
        work.skip("cooked", "too short", "loop")
    await work.check("cooked")

graph = StateGraph(State).add_node(cooking).add_edge(START, "cooking").add_edge("cooking", END)
workflow = Workflow("recipe", "recipe", "Recipes", graph.compile(), checks=("cooked",))
'''
POINTS = "kinds: RECIPE, workflows: workflow, settings: Recipes"


@pytest.mark.slow
def test_one_module_declares_kind_workflow_and_settings(tmp_path: Path) -> None:
    (tmp_path / "recipes.py").write_text(MODULE)
    about = tmp_path / "recipes-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: recipes\nVersion: 1\n")
    groups = (part.split(": ") for part in POINTS.split(", "))
    points = (f"[judge.{group}]\nrecipe = recipes:{name}\n" for group, name in groups)
    (about / "entry_points.txt").write_text("".join(points))
    (tmp_path / "r.jsonl").write_text('{"dish": "Soup", "steps": "Boil it long."}\n')
    (tmp_path / "yes.yaml").write_text("method: logprobs\nreplies: [{p_yes: 0.9}]")
    (tmp_path / "cooked.yaml").write_text("name: cooked\nquestion: Cooked?\nfields: [steps]")
    command = [
        sys.executable,
        "-m",
        "judge",
        "validate",
        "r.jsonl",
        "-m",
        "scripted:yes.yaml",
        "-q",
    ]
    command += ["--rubric", "cooked.yaml", "--no-cache"]
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    for words, verdict in ((), "pass"), (("--least-words", "4"), "skipped"):
        done = subprocess.run([*command, *words], cwd=tmp_path, env=env, capture_output=True)
        assert done.returncode in (0, 3), done.stderr.decode()
        (check,) = json.loads(done.stdout)["judge"]["checks"]
        assert (check["check"], check["verdict"]) == ("cooked", verdict)


@pytest.mark.parametrize(
    ("group", "code", "words", "told"),
    [
        (
            "settings",
            "import absent",
            "plan r.jsonl --ask a?",
            "mine in judge.settings, of the package mine,",
        ),
        (
            "settings",
            SETTING.format("votes", ""),
            "plan r.jsonl --ask a?",
            "there is a setting votes already; mend mine, or",
        ),
        (
            "settings",
            SETTING.format("grade", ", short='-m'"),
            "plan r.jsonl --ask a?",
            "grade: there is a flag -m already; mend mine, or",
        ),
        (
            "settings",
            SETTING.format("grade", "").replace(": int", ": 'Missing'"),
            "plan r.jsonl --ask a?",
            "name 'Missing' is not defined; mend mine, or",
        ),
        (
            "settings",
            SETTING.format("limit", ""),
            "plan r.jsonl --ask a?",
            "the setting limit of mine gets no flag: rename it",
        ),
        (
            "workflows",
            "print('hi'); raise SystemExit(1)",
            "plan r.jsonl --workflow mine.py:mine",
            "mine.py: SystemExit: 1",
        ),
        ("workflows", "", "plan r.jsonl --workflow mine", "module 'mine' has no attribute 'mine'"),
        (
            "kinds",
            "mine = 3",
            "plan r.jsonl --ask a?",
            "mine:mine is no judge.records.kinds.RecordK",
        ),
        (
            "kinds",
            "print('hi'); raise SystemExit(1)",
            "plan r.jsonl --ask a?",
            "of the package mine, cannot be used: SystemExit: 1; mend mine, or",
        ),
        (
            "backends",
            "class mine: pass",
            "validate r.jsonl --ask a? -m mine:m",
            "mine:mine is no judge.backends.base.Backend",
        ),
        (
            "backends",
            BACKEND.format("raise KeyError('MINE_URL')", "pass"),
            ASKED,
            "of the package mine, cannot be used: KeyError: 'MINE_URL'; mend mine, or",
        ),
        ("backends", BACKEND.format("pass", "pass"), ASKED, "mine.mine returned NoneType, not a"),
        (
            "backends",
            BACKEND.format("pass", "raise asyncio.CancelledError"),
            ASKED,
            '"message":"CancelledError (a fault in mine)"',
        ),
        (
            "backends",
            BACKEND.format("pass", "raise TimeoutError('mine')"),
            ASKED,
            "server-fault: timeout: mine",
        ),
        ("commands", "1 +", "mine", "SyntaxError: invalid syntax (mine.py, line 1); mend mine, or"),
        ("commands", "1 +", "-h", "Judge records; write each back"),
        ("commands", "command = 3", "-h", "mine has no function `command`; mend mine, or"),
        ("commands:mine", "def mine(): pass", "-h", "mine:mine is no module; mend mine, or"),
        (
            "labels",
            """from judge.records.labels.items import LabelSet
class mine(LabelSet):
    def items(self, item, fields): return fields["ratings"]""",
            "agreement mine:r.jsonl",
            "unexpected error, a fault in mine: KeyError: 'ratings'; JUDGE_DEBUG=1 shows where",
        ),
    ],
)
def test_a_broken_package_is_named(
    tmp_path: Path, group: str, code: str, words: str, told: str
) -> None:
    (tmp_path / "mine.py").write_text(code)
    about = tmp_path / "mine-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1\n")
    group, _, whole = group.partition(":")
    at = "mine" if group == "commands" and not whole else "mine:mine"
    (about / "entry_points.txt").write_text(f"[judge.{group}]\nmine = {at}\n")
    (tmp_path / "r.jsonl").write_text('{"text": "a", "labels": {"q": "yes"}}\n')
    command = [sys.executable, "-m", "judge", *words.split()]
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "COLUMNS": "200"}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert told in " ".join((done.stdout + done.stderr).split())
    assert "fault in judge" not in done.stderr and "hi\n" not in done.stdout
    if "--ask a? -m" not in words and ("--ask" in words or words == "-h"):
        assert done.returncode == 0, done.stderr


def test_a_name_of_judge_stays_its_own(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("mine = 3")
    about = tmp_path / "mine-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1\n")
    points = "[judge.kinds]\nnorm = mine:mine\n[judge.commands]\nreport = mine\n"
    (about / "entry_points.txt").write_text(points)
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "COLUMNS": "200"}
    code = "from judge.records.kinds import kind_named; print(kind_named('norm').needed)"
    for words, told in (("-c", code), "rule_of_thumb"), (("-m", "judge", "-h"), "\n  report "):
        done = subprocess.run([sys.executable, *words], env=env, capture_output=True, text=True)
        assert done.stdout.count(told) == 1, done.stderr
    assert "report in judge.commands, of the package mine, cannot be used: judge" in done.stderr


def test_no_package_hides_the_rubrics_that_another_ones_settings_bring() -> None:
    class Other(Options):
        def own_rubrics(self) -> Sequence[Rubric]:
            return ()

    both = create_model("Both", __base__=(Other, NormSettings, CoreSettings))
    settings: Any = both(normad_release="corrected")
    names = {rubric.name for rubric in settings.package_rubrics}
    assert "background_alone" in names
