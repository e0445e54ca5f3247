"""No file is executed: caches, journals, rubrics, scripts, model folders."""

from __future__ import annotations

import ast
import json
import pickle
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import norm
from cli.typed import Typed

from judge.backends.base import Call, Mode, Origin
from judge.backends.scripted import ScriptedBackend
from judge.cache import ReplyCache
from judge.errors import BadRequest, UsageError
from judge.papers.tasks import parse_task
from judge.questions.rubric import Rubric

from .test_keys import POLITE

RUN = ("validate", "n.jsonl", "-m", "scripted:m.yaml", "--check", "polite")
RUN = (*RUN, "--rubric", "polite.yaml", "--method", "structured")


class Bomb:
    """Creates a file when unpickled."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.target,))


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Typed:
    made = Typed(tmp_path, monkeypatch, capfd)
    made.write("n.jsonl", [norm(number) for number in range(2)])
    made.script("m.yaml", [{"reply": {"quote": None, "reason": "so", "answer": "yes"}}])
    (tmp_path / "polite.yaml").write_text(POLITE)
    return made


# ---------------------------------------------------------------- the cache folder


def sql(folder: Path, text: str, *values: object) -> list[Any]:
    with sqlite3.connect(folder / "cache.db") as database:
        return database.execute(text, values).fetchall()


@pytest.mark.slow
def test_a_run_over_a_cache_full_of_pickles(typed: Typed) -> None:
    """Every row and every file of the folder is a pickle, of whatever mode and raw."""
    whole = typed(*RUN)
    assert whole.returncode == 0, whole.stderr
    target, cache = typed.folder / "boom", typed.folder / "cache"
    bomb = pickle.dumps(Bomb(target))
    keys = [key for (key,) in sql(cache, "SELECT key FROM Cache")]
    assert len(keys) >= 2
    for mode, raw, name in ((4, 1, None), (4, 0, None), (4, 1, "bomb.val"), (3, 1, "../bomb.val")):
        change = "UPDATE Cache SET mode = ?, raw = ?, filename = ?, value = ?"
        sql(cache, change, mode, raw, name, None if name else bomb)
        for place in (cache, cache.parent):
            (place / "bomb.val").write_bytes(bomb)
        assert typed(*RUN).stdout == whole.stdout
        for words in (("stats",), ("prune", "--older-than", "0s"), ("clear", "--yes")):
            typed("cache", *words)
        typed(*RUN)
        assert (typed.folder / "bomb.val").exists(), "files outside are not deleted"
    assert not target.exists()
    pickle.loads(bomb)
    assert target.exists(), "the bomb itself must work, or this test proves nothing"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("disk", "judge.evil.Disk"),
        ("_sql", "not callable"),
        ("disk_min_file_size", 0),
        ("sqlite_writable_schema", 1),
        ("sqlite_journal_mode = off; --", 1),
        ("eviction_policy", "nonsense"),
        ("count", None),
    ],
)
def test_planted_settings_do_not_count(tmp_path: Path, key: str, value: object) -> None:
    made = ReplyCache(tmp_path)
    made.set("a", {"a": 1})
    made.close()
    sql(tmp_path, "INSERT OR REPLACE INTO Settings VALUES (?, ?)", key, value)
    again = ReplyCache(tmp_path)
    again.set("b", {"b": "x" * 100_000})
    assert (again.get("a"), again.get("b")) == ({"a": 1}, {"b": "x" * 100_000})
    assert again.stats().entries == 2 and again.clear() == 2
    again.close()
    assert not list(tmp_path.rglob("*.val"))


# ---------------------------------------------------------------- rubrics, tasks, scripts

ESCAPES = [
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ ''['__class__']['__base__'] }}",
    "{{ ''|attr('\\x5f\\x5fclass\\x5f\\x5f') }}",
    "{{ cycler.__init__.__globals__.os.system('touch boom') }}",
    "{{ self._TemplateReference__context }}",
    "{{ '{0.__class__.__mro__}'.format('') }}",
    "{{ ('{0.__class__}'|attr('format'))('') }}",
    "{{ ['{0.__class__.__init__.__globals__}']|map('format', self)|list|first }}",
    "{% set f = '{0.__class__}'.format %}{{ f('') }}",
    "{{ '{x.__class__}'.format_map({'x': ''}) }}",
    "{% include '/etc/passwd' %}",
    "{% import 'os' as os %}{{ os.system('touch boom') }}",
    "{{ __import__('os').system('touch boom') }}",
    "{% do [].append(1) %}",
]


TASK = "name: t\ntitle: t\nsource: s\nfields: [story]\nquestion: {}\n"


def rubric(question: str) -> str:
    return POLITE.replace('"Is it polite?"', json.dumps(question))


@pytest.mark.parametrize("escape", ESCAPES)
def test_templates_do_not_get_out_of_their_sandbox(
    escape: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Rubric.from_text(rubric("Is it? {{ label }}"), "p.yaml"), "the rubric itself is fine"
    with pytest.raises(UsageError, match=r"template|unknown variable"):
        Rubric.from_text(rubric(escape), "p.yaml")
    task = TASK.format(json.dumps(escape))
    assert parse_task(TASK.format("Is it?"), "t.yaml"), "the task itself is fine"
    with pytest.raises(UsageError, match=r"template|unknown variable"):
        parse_task(task, "t.yaml")
    assert not list(tmp_path.iterdir())


async def test_scripts_do_not_get_out_of_their_sandbox(
    typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = {"values": ["a"], "story": "s"}
    call = Call([{"role": "user", "content": "?"}], origin=Origin(fields=lambda: fields))
    for escape in (*ESCAPES, "{{ values.append('x') }}", "{{ values.clear() }}"):
        typed.script("m.yaml", [{"reply": escape}])
        try:
            told = (await ScriptedBackend("m.yaml").complete(call, Mode.JSON)).text
        except BadRequest:
            continue
        # The first step out gives what is undefined, which is shown as nothing.
        assert told == "" or "Undefined" in told, (escape, told)
    assert fields["values"] == ["a"]
    assert not (tmp_path / "boom").exists()


TAGS = [
    "!!python/object/apply:os.system ['touch boom']",
    "!mine text",
]


@pytest.mark.parametrize("tag", TAGS)
def test_yaml_tags_are_refused(typed: Typed, tag: str) -> None:
    with pytest.raises(UsageError, match=r"p.yaml:3: YAML tags are not supported"):
        Rubric.from_text(POLITE.replace("title: Is it polite?", f"title: {tag}"), "p.yaml")
    (typed.folder / "m.yaml").write_text(f"replies:\n  - reply: {tag}\n")
    done = typed(*RUN)
    assert done.returncode == 2 and b"m.yaml" in done.stderr and b"Traceback" not in done.stderr
    assert not (typed.folder / "boom").exists()


def test_what_is_named_like_a_model_and_is_none_is_not_called(typed: Typed) -> None:
    for name in ("os.system:touch boom", "subprocess.Popen:touch boom", "builtins.open:boom"):
        done = typed(*RUN[:3], f"langchain:{name}", *RUN[4:])
        assert done.returncode == 2 and b"is not a LangChain chat model" in done.stderr
    assert not (typed.folder / "boom").exists()


@pytest.mark.slow
def test_libraries_are_never_told_to_run_what_a_file_holds() -> None:
    """The keywords that no rule of ruff's looks at."""
    wanted = {"allow_pickle": "False", "trust_remote_code": "False"}
    wanted |= {"use_safetensors": "True", "weights_only": "True"}
    root, given = Path(__file__).parents[2], []
    for path in [*root.glob("judge/**/*.py"), *root.glob("graphs/*.py"), *root.glob("bench/*.py")]:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.keyword) and node.arg in wanted:
                given.append((path.name, node.arg, ast.unparse(node.value)))
            elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".from_pretrained"):
                assert "trust_remote_code" in {one.arg for one in node.keywords}, path
    assert len(given) >= 3
    assert [one for one in given if wanted[one[1]] != one[2]] == []
