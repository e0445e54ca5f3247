"""The proxy of each request; requests to this machine use none, whichever library sends them."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from cli.typed import Typed
from loopback import Loopback, says

from judge.backends.http import CHAT, HttpServer
from judge.backends.proxies import is_loopback, proxy_for
from judge.errors import BackendError, UsageError
from judge.local.llama import LocalBackend

VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
YES = {"quote": None, "reason": "kind", "answer": "yes"}


class Recorder(http.server.BaseHTTPRequestHandler):
    """A proxy that answers everything with one status."""

    seen: list[str] = []  # noqa: RUF012
    status = 502

    def _refuse(self) -> None:
        self.seen.append(f"{self.command} {self.path}")
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.send_response(self.status)
        self.send_header("content-length", "0")
        self.end_headers()

    do_GET = do_POST = do_CONNECT = _refuse  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*VARIABLES, *map(str.upper, VARIABLES)):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def proxy() -> Iterator[str]:
    Recorder.seen = []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Recorder) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://ann:secret-word@127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST.", "127.0.0.1", "127.9.8.7", "127.1", "0x7f000001", "::1", "[::1]",
     "::ffff:127.0.0.1", "api.localhost", "0.0.0.0"],
)  # fmt: skip
def test_this_machine_in_every_spelling(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_loopback(host)
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1")
    assert proxy_for("http", host) is None


@pytest.mark.parametrize("host", ["128.0.0.1", "localhost.test", "notlocalhost", "10.0.0.1", "::2"])
def test_other_machines(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"])
def test_a_proxy_of_the_environment(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "proxy.test:3128")
    found = proxy_for("http", "models.test")
    assert found and (found.url, found.source) == ("http://proxy.test:3128", name)
    monkeypatch.setenv(name, "socks5h://ann:secret-word@proxy.test:1080")
    with pytest.raises(
        UsageError, match=rf"\({name}\) speaks socks5h.*models.test into NO_PROXY"
    ) as e:
        HttpServer("http://models.test/v1", {})
    assert "secret-word" not in str(e.value)


@pytest.mark.parametrize(
    ("listed", "host", "exempt"),
    [
        ("10.0.0.0/8", "10.1.2.3", True),
        ("10.0.0.0/8", "11.1.2.3", False),
        ("fd00::/8", "[fd12::1]", True),
        ("a.test, .models.test", "x.models.test", True),
        ("*", "models.test", True),
        ("nonsense/99", "10.1.2.3", False),
    ],
)
def test_no_proxy(listed: str, host: str, exempt: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.test")
    monkeypatch.setenv("NO_PROXY", listed)
    assert (proxy_for("https", host) is None) == exempt


@pytest.mark.parametrize(("url", "status"), [
    ("http://models.test/v1", 502), ("http://models.test/v1", 407),
    ("https://models.test/v1", 502), ("https://models.test/v1", 407),
])  # fmt: skip
async def test_a_proxys_own_error_names_it(
    url: str, status: int, proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Recorder, "status", status)
    monkeypatch.setenv("ALL_PROXY", proxy)
    http = HttpServer(url, {})
    with pytest.raises(BackendError, match=rf"the proxy http://127.*ALL_PROXY.*HTTP {status}") as e:
        await http.request("POST", CHAT, data=b"{}")
    await http.aclose()
    assert "secret-word" not in str(e.value)
    assert e.value.kind == ("denied" if status == 407 else "server-fault")


async def test_a_proxy_that_is_away_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    http = HttpServer("http://models.test/v1", {})
    with pytest.raises(BackendError, match=r"the proxy http://127.0.0.1:9 \(HTTP_PROXY\)"):
        await http.request("POST", CHAT, data=b"{}")
    await http.aclose()


@pytest.mark.parametrize("model", ["openai:m", "langchain:openai:m"])
def test_records_for_a_server_on_this_machine_pass_no_proxy(
    model: str,
    proxy: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, proxy)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    judge = Typed(tmp_path, monkeypatch, capfd)
    judge.write("in.jsonl", [{"id": "a", "email": "SECRET-RECORD"}])
    with Loopback(lambda asked: says(YES)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        code, out, told = judge.text("validate", "in.jsonl", "--ask", "Kind?", "-m", model)
    assert code == 0 and '"verdict":"pass"' in out, told
    assert Recorder.seen == []


def test_neither_does_a_hub_on_this_machine(
    proxy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from judge.local.fetch import SourceUnreachable, from_publisher
    from judge.local.store import entry

    monkeypatch.setenv("HTTP_PROXY", proxy)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(SourceUnreachable, match=r"127\.0\.0\.1:9"):
        from_publisher(entry("smollm2-135m"), tmp_path / "part", lambda *_: None)
    assert Recorder.seen == []
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
    monkeypatch.setenv("HF_ENDPOINT", "https://hub.test")
    with pytest.raises(SourceUnreachable, match=r"(?i)socks"):
        from_publisher(entry("smollm2-135m"), tmp_path / "part", lambda *_: None)


def test_neither_does_the_prompt_of_an_engine_in_this_process(
    proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = object.__new__(LocalBackend)
    backend._key = "k"
    backend.__dict__["_engine"] = SimpleNamespace(listening_address="http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", proxy)
    with pytest.raises(BackendError, match="did not apply its template"):
        backend._templated([{"role": "user", "content": "SECRET-RECORD"}])
    assert Recorder.seen == []
