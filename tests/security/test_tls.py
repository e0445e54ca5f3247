"""Certificates are verified; the environment can only choose which authorities are trusted."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from judge import errors
from judge.backends.base import Call, Mode
from judge.backends.langchain import LangChainBackend
from judge.backends.openai import OpenAIBackend
from judge.local import fetch
from judge.local.fetch import SourceUnreachable
from judge.local.store import Weights

OFF = {
    "PYTHONHTTPSVERIFY": "0",
    "CURL_CA_BUNDLE": "",
    "REQUESTS_CA_BUNDLE": "",
    "SSL_CERT_FILE": "",
    "SSL_CERT_DIR": "",
    "NODE_TLS_REJECT_UNAUTHORIZED": "0",
    "GIT_SSL_NO_VERIFY": "1",
    "HF_HUB_DISABLE_SSL_VERIFICATION": "1",
}
"""What turns verification off in one program or another."""

CALL = Call([{"role": "user", "content": "Is it so?"}])
ANSWER = (
    b'{"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [{"index": 0,'
    b' "message": {"role": "assistant", "content": "yes"}, "finish_reason": "stop"}], "usage": '
    b'{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}'
)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a self-signed certificate for 127.0.0.1 and models.test: cert.pem, key.pem."""
    folder = tmp_path_factory.mktemp("tls")
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    name = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1,DNS:models.test"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    try:
        subprocess.run([*made, *files, *name], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("makes a certificate with openssl")
    return folder


@pytest.fixture
def had() -> list[str]:
    """The requests that reached the server."""
    return []


@pytest.fixture
def url(certificate: Path, had: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server with that certificate, to which every way of judge's leads."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            had.append(self.path)
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(503 if "busy" in self.path else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(ANSWER)))
            self.end_headers()
            self.wfile.write(ANSWER)

        def do_GET(self) -> None:
            had.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", "4")
            self.end_headers()
            self.wfile.write(b"GGUF")

        def log_message(self, *_: object) -> None:
            pass

    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")

    class Quiet(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """The tests expect callers to break off the handshake: no traceback is printed."""

    server = Quiet(("127.0.0.1", 0), Handler)
    server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    address = f"https://127.0.0.1:{server.server_address[1]}"
    for name in OFF:
        monkeypatch.delenv(name, raising=False)
    # It keeps its clients, and with them whom they trust, for as long as the process lives.
    from langchain_openai.chat_models import _client_utils

    for kept in vars(_client_utils).values():
        if hasattr(kept, "cache_clear"):
            kept.cache_clear()
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{address}/v1")
    monkeypatch.setenv("HF_ENDPOINT", address)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield address
    server.shutdown()
    server.server_close()
    thread.join(60)


async def asked(kind: type[OpenAIBackend] | type[LangChainBackend]) -> str:
    backend = kind("m" if kind is OpenAIBackend else "openai:m")
    try:
        return (await backend.complete(CALL, Mode.JSON)).text
    finally:
        await backend.aclose()


def fetched(folder: Path) -> bytes:
    part = folder / "w.part"
    there = "https://huggingface.co/a/b/resolve/main/w.gguf"
    weights = Weights("w", "tests", "MIT", "w.gguf", 4, "", there)
    fetch.from_publisher(weights, part, lambda done, of, what: None)
    return part.read_bytes()


async def refused_by_all(folder: Path, why: str = "certificate") -> None:
    for kind in (OpenAIBackend, LangChainBackend):
        with pytest.raises(errors.Unreachable) as caught:
            await asked(kind)
        assert kind is LangChainBackend or why in str(caught.value)
    with pytest.raises(SourceUnreachable, match=r"(?i)certificate"):
        fetched(folder)


# Without SSL_CERT_*, too: an empty one of these could be what keeps others from counting.
@pytest.mark.parametrize("names", [list(OFF), [name for name in OFF if "SSL_CERT" not in name]])
async def test_nothing_in_the_environment_turns_it_off(
    url: str, had: list[str], tmp_path: Path, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in names:
        monkeypatch.setenv(name, OFF[name])
    await refused_by_all(tmp_path)
    assert had == [], "nothing was sent"


async def test_an_authority_of_ones_own_is_named_by_ssl_cert_file(
    url: str, tmp_path: Path, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "cert.pem"))
    assert await asked(OpenAIBackend) == "yes"
    assert await asked(LangChainBackend) == "yes"
    assert fetched(tmp_path) == b"GGUF"


async def test_what_a_server_answers_through_a_proxys_tunnel_is_its_own(
    url: str, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def tunnel(client: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        await client.readuntil(b"\r\n\r\n")
        server, request = await asyncio.open_connection("127.0.0.1", url.rpartition(":")[2])
        answer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await asyncio.gather(passed_on(client, request), passed_on(server, answer))

    async def passed_on(source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
        while part := await source.read(65_536):
            to.write(part)
        to.close()

    proxy = await asyncio.start_server(tunnel, "127.0.0.1", 0)
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "cert.pem"))
    monkeypatch.setenv("OPENAI_BASE_URL", "https://models.test/busy/v1")
    with pytest.raises(errors.ServerFault, match=r"^HTTP 503: .*chat\.completion"):
        await asked(OpenAIBackend)
    proxy.close()
