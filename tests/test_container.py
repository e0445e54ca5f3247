"""The Dockerfile: the image has all of the package. With Docker it is built, and judges standard
input as a user without rights."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
IMAGE = "judge-test"


def docker(*words: str, stdin: str = "", seconds: float = 60) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["docker", *words], cwd=ROOT, input=stdin, capture_output=True, text=True, timeout=seconds
    )


def usable() -> bool:
    try:
        return shutil.which("docker") is not None and docker("info").returncode == 0
    except subprocess.TimeoutExpired:
        return False


def test_the_image_is_made_of_the_whole_package() -> None:
    text = (ROOT / "Dockerfile").read_text()
    copies = re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE)
    copied = {word for words in copies for word in words.split()}
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().split() if line[0] == "!"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed = {*project["tool"]["setuptools"]["package-dir"].values(), "pyproject.toml"}
    needed |= {project["project"]["readme"], *project["project"]["license-files"]}
    assert copied == allowed == needed
    user = re.findall(r"^USER (\w+)$", text, re.MULTILINE)
    assert user == ["judge"] and ".gguf" not in text


@pytest.mark.slow
def test_the_image_judges_standard_input(tmp_path: Path) -> None:
    if not usable():
        pytest.skip("no Docker daemon answers")
    built = docker("build", "-t", IMAGE, ".", seconds=900)
    assert built.returncode == 0, built.stderr[-3000:]
    try:
        tmp_path.chmod(0o777)
        reply = {"quote": None, "reason": "It thanks.", "answer": "yes"}
        (tmp_path / "yes.yaml").write_text(json.dumps({"replies": [{"reply": reply}]}))
        words = ("validate", "-", "--ask", "Is it polite?", "-m", "scripted:yes.yaml")
        run = ("run", "--rm", "-i", "-v", f"{tmp_path}:/data", IMAGE)
        done = docker(*run, *words, stdin='{"id": "a", "email": "Thank you."}\n')
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["judge"]["verdict"] == "pass"
        assert "judge" in docker("run", "--rm", "--entrypoint", "id", IMAGE, "-un").stdout
        other = docker("run", "--rm", "-i", "--user", "4321", "-v", f"{tmp_path}:/data", IMAGE,
                       *words, "-o", "out.jsonl", stdin='{"email": "Thank you."}\n')  # fmt: skip
        assert other.returncode == 0 and (tmp_path / "out.jsonl").is_file(), other.stderr
    finally:
        docker("image", "rm", "-f", IMAGE)
