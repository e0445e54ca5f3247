"""Pulling any GGUF file of a Hugging Face hub, which answers on loopback and sends its files from
another server, as Hugging Face's does."""

from __future__ import annotations

import asyncio
import hashlib
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from cli.typed import Typed

from judge.local import store
from judge.local.fetch import _choice

PAYLOAD = b"GGUF" + bytes(range(256)) * 2000
REPOSITORY, FILE = "some-org/Tiny-GGUF", "tiny-Q4_K_M.gguf"
NAME = f"{REPOSITORY}:{FILE}"
COMMIT = "c" * 40


@dataclass
class Hub:
    """A hub and its file server: what they send, and the requests they got."""

    body: bytes = PAYLOAD
    cut_after: int | None = None
    private: bool = False
    listing: tuple[str, ...] = (FILE, "tiny-Q8_0.gguf", "../up.gguf", "a-00001-of-00002.gguf")
    url: str = ""
    files_url: str = ""
    asked: list[tuple[str, str, str, str]] = field(default_factory=list)

    def note(self, server: str, request: web.Request) -> None:
        headers = (request.headers.get(name, "") for name in ("Authorization", "Range"))
        self.asked.append((server, request.path, *headers))

    async def model(self, request: web.Request) -> web.Response:
        self.note("hub", request)
        if self.private and request.headers.get("Authorization") != "Bearer hf_right-key":
            return web.json_response({}, status=401, headers={"X-Error-Code": "RepoNotFound"})
        lfs = {"sha256": hashlib.sha256(PAYLOAD).hexdigest(), "size": len(PAYLOAD)}
        lfs |= {"pointerSize": 134}
        files = [{"rfilename": f, "size": len(PAYLOAD), "lfs": lfs} for f in self.listing]
        files.append({"rfilename": "README.md", "size": 5})
        told = {"id": REPOSITORY, "sha": COMMIT, "tags": ["license:mit"], "siblings": files}
        return web.json_response(told)

    async def nothing(self, request: web.Request) -> web.Response:
        return web.json_response({}, status=404, headers={"X-Error-Code": "RepoNotFound"})

    async def resolve(self, request: web.Request) -> web.Response:
        self.note("hub", request)
        return web.Response(status=302, headers={"Location": f"{self.files_url}/blob"})

    async def blob(self, request: web.Request) -> web.StreamResponse:
        self.note("files", request)
        start = int(request.headers.get("Range", "bytes=0-")[6:-1])
        of = f"bytes {start}-{len(self.body) - 1}/{len(self.body)}"
        headers = {"Content-Range": of} if start else {}
        response = web.StreamResponse(status=206 if start else 200, headers=headers)
        response.content_length = len(self.body) - start
        await response.prepare(request)
        end, self.cut_after = self.cut_after, None
        await response.write(self.body[start:end])
        if end is not None and request.transport:
            request.transport.close()
        return response


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    state, loop = Hub(), asyncio.new_event_loop()
    runners = list[web.AppRunner]()

    async def serve(*routes: tuple[str, Callable[..., Any]]) -> str:
        app = web.Application()
        app.add_routes([web.get(path, handler) for path, handler in routes])
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        runners.append(runner)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{runner.addresses[0][1]}"

    async def start() -> None:
        state.files_url = await serve(("/blob", state.blob))
        resolve = f"/{REPOSITORY}/resolve/{COMMIT}/{{file}}"
        model = f"/api/models/{REPOSITORY}"
        routes = (model, state.model), (resolve, state.resolve), ("/{any:.*}", state.nothing)
        state.url = await serve(*routes)

    loop.run_until_complete(start())
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("HF_ENDPOINT", state.url)
    # A proxy is not asked for what is on this machine.
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.delenv("HF_TOKEN", raising=False)
    yield state
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    for runner in runners:
        loop.run_until_complete(runner.cleanup())
    loop.close()


@pytest.fixture
def models(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = typed.folder / "models"
    monkeypatch.setenv("JUDGE_MODELS_DIR", str(folder))
    return folder


def test_a_file_is_pulled_named_listed_checked_and_removed(
    hub: Hub, models: Path, typed: Typed
) -> None:
    code, out, told = typed.text("models", "pull", f"hf:{NAME}")
    file = models / REPOSITORY / FILE
    assert (code, out) == (0, f"{file}\n"), told
    assert file.read_bytes() == PAYLOAD
    listed = " ".join(typed.text("models", "list")[1].split())
    assert f"tiny-Q4_K_M 1 MB mit yes not measured; of {REPOSITORY}" in listed
    assert f"folder: {models}" in listed
    for name in (NAME, "tiny-Q4_K_M"):
        assert store.with_adapter(name) == (file, None)
        assert typed.text("models", "path", name)[:2] == (0, f"{file}\n")
    file.write_bytes(PAYLOAD[::-1])
    typed.write("r.jsonl", [{"text": "a"}])
    code, _, told = typed.text("validate", "r.jsonl", "--ask", "?", "-m", f"local:{NAME}")
    assert code == 2 and "was changed since it was fetched" in told and f"pull {NAME}" in told
    count = len(hub.asked)
    for _ in range(2):
        assert typed("models", "pull", "tiny-Q4_K_M").returncode == 0
    assert file.read_bytes() == PAYLOAD and len(hub.asked) == count + 2, "fetched anew, once"
    assert typed.text("models", "remove", "tiny-Q4_K_M")[1] == "removed tiny-Q4_K_M (1 MB)\n"
    assert sorted(path.name for path in models.iterdir()) == [".hashes.json", "pulled.json"]
    code, _, told = typed.text("models", "remove", NAME)
    assert code == 2 and "no weights are named" in told


def test_a_broken_download_goes_on_and_wrong_bytes_are_deleted(
    hub: Hub, models: Path, typed: Typed
) -> None:
    hub.cut_after = 300_000
    assert typed("models", "pull", f"hf:{NAME}").returncode == 4
    part = models / REPOSITORY / f"{FILE}.part"
    assert 0 < part.stat().st_size <= 300_000
    held = part.stat().st_size
    assert typed("models", "pull", f"hf:{NAME}").returncode == 0
    assert hub.asked[-1] == ("files", "/blob", "", f"bytes={held}-")
    assert typed("models", "remove", NAME).returncode == 0
    hub.body = PAYLOAD[::-1]
    code, _, told = typed.text("models", "pull", f"hf:{NAME}")
    assert code == 4 and "is not the file it should be and was deleted" in told
    assert not part.exists() and store.known().keys() == store.CATALOG.keys()


def test_the_key_goes_to_the_hub_alone(
    hub: Hub, models: Path, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.private = True
    code, _, told = typed.text("models", "pull", f"hf:{NAME}")
    assert code == 2 and "HF_TOKEN" in told
    monkeypatch.setenv("HF_TOKEN", "hf_right-key")
    code, _, told = typed.text("models", "pull", f"hf:{NAME}")
    assert code == 0 and "over http://" not in told, "to this machine it may go so"
    keys = {(server, key) for server, _, key, _ in hub.asked[1:]}
    assert keys == {("hub", "Bearer hf_right-key"), ("files", "")}
    left = [path for path in typed.folder.rglob("*") if path.is_file()]
    assert left and not any(b"hf_right" in path.read_bytes() for path in left)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (f"hf:{REPOSITORY}", f"there are\n  {FILE}  1 MB\n  tiny-Q8_0.gguf  1 MB\n"),
        (f"hf:{REPOSITORY}:tiny-Q5.gguf", "has no tiny-Q5.gguf: name a file, as in"),
        (f"hf:{REPOSITORY}:../up.gguf", "has no ../up.gguf: name a file"),
        (f"hf:{REPOSITORY}:a-00001-of-00002.gguf", "has no a-00001-of-00002.gguf"),
        ("hf:other/none", "there is no other/none at http://127.0.0.1"),
        ("hf:../x:y.gguf", "type hf:ORG/REPO:FILE"),
        (NAME, "hf:ORG/REPO:FILE is a file of a hub"),
    ],
)
def test_a_name_that_is_not_one_file_is_answered_with_what_there_is(
    hub: Hub, models: Path, typed: Typed, name: str, told: str
) -> None:
    code, _, err = typed.text("models", "pull", name)
    assert code == 2 and told in err, err
    assert not (models / REPOSITORY).exists()


@pytest.mark.slow
def test_a_file_in_the_cache_of_hugging_face_is_used_from_there(
    hub: Hub, models: Path, typed: Typed
) -> None:
    """In a process of its own: the library reads HF_HOME when it is loaded."""
    home = models.parent / "hf"
    snapshot = home / "hub" / f"models--{REPOSITORY.replace('/', '--')}" / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    cached = snapshot / FILE
    cached.write_bytes(PAYLOAD)
    words = [sys.executable, "-m", "judge", "models", "pull", f"hf:{NAME}"]
    env = {"HF_HOME": str(home), "HF_ENDPOINT": hub.url, "JUDGE_MODELS_DIR": str(models)}
    done = subprocess.run(words, env=env, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"{cached}\n"), done.stderr
    assert [server for server, *_ in hub.asked] == ["hub"] and store.resolve(NAME) == cached
    assert "belongs to another tool and is kept" in typed.text("models", "remove", NAME)[1]
    assert cached.is_file() and NAME not in store.known()
    assert not (models / "some-org").exists()


def test_a_hub_that_does_not_answer_ends_with_4(
    hub: Hub, models: Path, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    code, _, told = typed.text("models", "pull", f"hf:{NAME}")
    assert code == 4 and "cannot read some-org/Tiny-GGUF at http://127.0.0.1:1" in told


def test_one_name_of_two_repositories_is_not_guessed(models: Path) -> None:
    models.mkdir()
    (models / "pulled.json").write_text("{")
    assert store.known().keys() == store.CATALOG.keys(), "notes that cannot be read do not count"
    about = {"about": "", "licence": "", "file": FILE, "size": 1, "sha256": "", "url": ""}
    notes = {f"{org}/r:{FILE}": about for org in ("a", "b")}
    (models / "pulled.json").write_text(json.dumps(notes))
    with pytest.raises(store.UsageError, match=f"may be a/r:{FILE} or b/r:{FILE}: name one"):
        store.resolve("tiny-Q4_K_M")


def test_a_command_with_a_hubs_names_runs_nothing_else() -> None:
    told = _choice("o/r", "", {"$(id).gguf": "1 MB"})
    assert "`judge models pull 'hf:o/r:$(id).gguf'`" in told
