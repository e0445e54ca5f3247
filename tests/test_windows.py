"""Windows, simulated on Linux: functions it lacks are removed, calls it refuses are refused."""

from __future__ import annotations

import errno
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from judge.cli import printing
from judge.run import output

WITHOUT = '''
"""`judge` as on Windows: no such modules and functions; an open file is neither replaced nor
removed, and a file that is open for reading alone is not flushed."""
import asyncio, asyncio.unix_events, os, pathlib, select, shlex, signal, socket, subprocess, sys
import fcntl, multiprocessing, platformdirs.unix, tempfile

flags, mode, accmode = fcntl.fcntl, fcntl.F_GETFL, os.O_ACCMODE
replace, unlink, fsync, temporary = os.replace, os.unlink, os.fsync, tempfile.gettempdir() + "/tmp"

def refuse_open(path):
    for number in os.listdir("/proc/self/fd"):
        try:
            if os.path.samefile(f"/proc/self/fd/{number}", path):
                raise PermissionError(13, "The process cannot access the file", str(path))
        except FileNotFoundError:
            pass

def replaced(source, target, **more):
    refuse_open(source)
    refuse_open(target)
    replace(source, target, **more)

def unlinked(path, **more):
    if not str(path).startswith(temporary):
        refuse_open(path)
    unlink(path, **more)

def flushed(number):
    number = number if isinstance(number, int) else number.fileno()
    if flags(number, mode) & accmode == os.O_RDONLY:
        raise OSError(9, "Bad file descriptor")
    fsync(number)

for name in ("fcntl", "resource", "pwd", "grp", "termios", "tty", "uvloop"):
    sys.modules[name] = None
for name in ("geteuid", "getuid", "fork", "killpg", "sched_getaffinity", "setsid"):
    delattr(os, name)
for name in ("O_NOFOLLOW", "O_CLOEXEC", "O_DIRECTORY"):
    delattr(os, name)
for name in ("SIGHUP", "SIGKILL", "SIGUSR1", "SIGQUIT"):
    delattr(signal, name)
del select.PIPE_BUF, select.poll, select.epoll
os.replace, os.rename, os.unlink, os.remove, os.fsync = (
    replaced, replaced, unlinked, unlinked, flushed
)

from judge.cli import main

for line in sys.stdin.read().splitlines():
    sys.argv = ["judge", *shlex.split(line)]
    try:
        main()
    except SystemExit as end:
        print(f"{end.code} {line}", file=sys.stderr)
'''

ASK = "--ask 'Is it polite?' -m scripted:j.yaml --concurrency 1"

COMMANDS = f"""\
validate r.jsonl {ASK} -o o.jsonl --limit 2
validate reversed.jsonl {ASK} -o o.jsonl --resume --review mine.jsonl --review-verdicts fail
validate r.jsonl {ASK} -o o.xlsx --summary s.json
validate r.jsonl {ASK}
report o.jsonl -o o.html
label r.jsonl --ask 'Is it polite?' --sheet sheet.csv
compare o.jsonl o.xlsx.jsonl
cache stats
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks at open files as Linux shows them")
def test_everyday_jobs_need_nothing_that_windows_lacks(tmp_path: Path) -> None:
    rows = [json.dumps({"id": f"r{n}", "text": f"Thanks, {n} — ñ"}) + "\n" for n in range(4)]
    (tmp_path / "r.jsonl").write_text("".join(rows), "utf-8")
    (tmp_path / "reversed.jsonl").write_text("".join(rows[::-1]), "utf-8")
    reply = {"quote": "Thanks", "reason": "So.", "answer": "yes"}
    fails = [{"when": {"id": f"r{n}"}, "reply": {**reply, "answer": "no"}} for n in (2, 3)]
    (tmp_path / "j.yaml").write_text(json.dumps({"replies": [*fails, {"reply": reply}]}))
    (tmp_path / "without.py").write_text(WITHOUT)
    done = subprocess.run(
        [sys.executable, "without.py"],
        input=COMMANDS.encode(),
        cwd=tmp_path,
        env={"PATH": "", "HOME": str(tmp_path), "JUDGE_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        check=False,
        timeout=60,
    )
    told, commands = done.stderr.decode(), COMMANDS.splitlines()
    codes = [line.split()[0] for line in told.splitlines() if line[2:] in commands]
    assert codes == ["0"] * len(commands), told
    order = [json.loads(line)["id"] for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    assert order == ["r3", "r2", "r1", "r0"], told
    assert not [*tmp_path.glob(".judge-*")]


def test_a_copy_that_breaks_off_leaves_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(errno.EACCES, "The process cannot access the file")

    (out := tmp_path / "o.jsonl").write_bytes(b"old")
    monkeypatch.setattr(Path, "replace", refused)
    output.write_whole(out, b"new")
    assert out.read_bytes() == b"new" and [*tmp_path.iterdir()] == [out]
    monkeypatch.setattr(output.shutil, "copyfileobj", refused)
    with pytest.raises(PermissionError):
        output.write_whole(out, b"newer")
    assert [file.read_bytes() for file in tmp_path.glob(".judge-*.tmp")] == [b"newer"]


def test_what_is_piped_on_windows_is_utf_8(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.BytesIO()
    monkeypatch.setattr(printing, "_WINDOWS", True)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(pipe, "cp1252"))
    monkeypatch.setattr(printing.os, "set_blocking", lambda *_: None)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    printing.guard_streams()
    printing.print_output("check ─ 中")
    sys.stdout.flush()
    assert pipe.getvalue() == "check ─ 中\n".encode()
