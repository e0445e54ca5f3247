"""HTTP to one model server: kept-alive connections, bounded answers, faults as our own errors.

It uses aiohttp: a call costs a quarter of the CPU time of one through httpx2, and a tenth of one
through the openai package (docs/evidence/performance.md, bench/throughput.py).
"""

from __future__ import annotations

import asyncio
import os
import ssl
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import unquote, urlencode, urljoin, urlsplit, urlunsplit

from judge.backends.faults import retry_after, scrubbed
from judge.backends.proxies import is_loopback, proxy_for
from judge.errors import BackendError, Denied, ServerFault, Unreachable, UsageError
from judge.redact import MIN_SECRET, Redactor, secrets_of_address, without_secrets

if TYPE_CHECKING:
    from aiohttp import ClientHandlerType, ClientRequest, ClientResponse, ClientSession

CONNECT_TIMEOUT = 10.0
"""Seconds to reach the server."""

MAX_ANSWER = 2 * 1024 * 1024
"""Most bytes of an answer in memory, unpacked. Its parsed JSON may take sixty times as much."""

CHAT = "/chat/completions"
_BY_PROXIES = frozenset((407, 502, 503, 504))
"""Statuses that a proxy may send itself, if the server's address is plain HTTP."""

_MOVED = frozenset((301, 302, 303, 307, 308))


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A server's answer: HTTP status, headers (names in any case), body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpServer:
    """One address. `server` is that address without secrets.

    A user name and password in the address are sent as HTTP basic authentication. The environment's
    proxy is used (`judge.backends.proxies`), but never to this machine. Certificates are always
    verified, against SSL_CERT_FILE or SSL_CERT_DIR if set, else against certifi's. `secrets`: those
    of the address and the headers, to be redacted in answers. `redact` removes those of the address
    from text for a message. `open_to_all`: requests leave this machine unencrypted.

    Raises:
        UsageError: the address cannot be used.
    """

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        try:
            parts = urlsplit(url)
            port = f":{parts.port}" if parts.port is not None else ""
        except ValueError:
            # The library's message quotes the invalid part, which may be a password.
            raise UsageError(
                "the address has no valid host or port. In a user name or password, "
                "characters such as / @ : ? # are written as %2F %40 %3A %3F %23"
            ) from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError("the address does not begin with http:// or https:// and a host")
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        self.server = without_secrets(url).removesuffix(CHAT)
        path = parts.path.rstrip("/").removesuffix(CHAT)
        self._base = urlunsplit((parts.scheme, host + port, path, "", ""))
        self._query = parts.query
        self._headers = {"Content-Type": "application/json", **headers}
        if parts.username is not None:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._headers["Authorization"] = f"Basic {b64encode(login.encode()).decode()}"
        # Also the key alone of `Bearer KEY`.
        keys = (text.removeprefix("Bearer ").removeprefix("Basic ") for text in headers.values())
        login = self._headers.get("Authorization", "").partition(" ")[2]
        self.secrets = frozenset((*secrets_of_address(url), *keys, login))
        self.redact = Redactor(secrets_of_address(url), MIN_SECRET)
        self._secure = parts.scheme == "https"
        self._proxy = proxy_for(parts.scheme, host)
        self.open_to_all = not self._secure and not is_loopback(parts.hostname)
        self._session: ClientSession | None = None

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        silence: float | None = None,
        into: BinaryIO | None = None,
        longest: int = MAX_ANSWER,
        **content: Any,
    ) -> HttpResponse:
        """Make one request to a `path` of the server, such as /batches; returns any answer.

        Args:
            silence: seconds without a byte before giving up. (The client limits the whole call.)
            into: file for the body of a successful answer; the response then has no body.
            longest: most bytes of the answer.
            content: `data` and `headers`, for aiohttp.

        Raises:
            Unreachable: no connection to a server.
            ServerFault: the answer was too late, too long or cut off.
            Denied: the server redirects; requests are for this address alone.
        """
        import aiohttp

        url, session = self._at(path, query), self._session or self._opened()
        if silence is not None:
            limits = aiohttp.ClientTimeout(sock_connect=CONNECT_TIMEOUT, sock_read=silence)
            content["timeout"] = limits
        # Files may be on another host.
        follow, body, size = "data" not in content, bytearray(), 0
        content["middlewares"] = (self._headers_stay,) if follow else ()
        try:
            async with session.request(method, url, allow_redirects=follow, **content) as response:
                file = into if response.status < 300 else None
                async for part in response.content.iter_any():
                    size += len(part)
                    if size > longest:
                        text = f"{self.server}: the answer is longer than {longest} bytes"
                        raise ServerFault(text)
                    body.extend(part) if file is None else file.write(part)
        except (aiohttp.ClientError, ConnectionError, ValueError) as error:
            raise self._fault(error) from error
        if response.status >= 300:
            self._refuse_elsewhere(url, response)
            # It becomes a message, and echoes what was sent, also from an address in a file.
            text = self.redact(body.decode("utf-8", "surrogateescape"))
            body = bytearray(text, "utf-8", "surrogateescape")
        return HttpResponse(response.status, response.headers, bytes(body))

    async def _headers_stay(
        self, request: ClientRequest, send: ClientHandlerType
    ) -> ClientResponse:
        """Drop our headers, keys among them, from a request that was redirected to another host.

        aiohttp itself drops Authorization and cookies alone.
        """
        from yarl import URL

        if request.url.origin() != URL(self._base).origin():
            for name, content in self._headers.items():
                if request.headers.get(name) == content:
                    del request.headers[name]
        return await send(request)

    def _at(self, path: str, query: Mapping[str, str] | None) -> str:
        terms = "&".join(filter(None, (self._query, urlencode(query or {}))))
        return f"{self._base}{path}?{terms}" if terms else self._base + path

    def _refuse_elsewhere(self, url: str, response: ClientResponse) -> None:
        """Raise an error if the proxy itself answered, or if the answer redirects."""
        status = response.status
        if self._proxy and not self._secure and status in _BY_PROXIES:
            text = f"{self._proxy}, on the way to {self.server}, answers HTTP {status}"
            if status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
                raise Denied(
                    f"{text}: it needs a user name and password (http://USER:PASSWORD@...)"
                )
            raise ServerFault(text, retry_after=retry_after(status, response.headers))
        location = response.headers.get("Location")
        if status in _MOVED and location is not None:
            elsewhere = "an invalid address"
            with suppress(ValueError):
                elsewhere = without_secrets(urljoin(url, location)).removesuffix(CHAT)
            raise Denied(
                f"{self.server} redirects to {elsewhere} (HTTP {status}). "
                "Neither records nor key are sent there; if that is the right address, name it "
                "instead"
            )

    def _fault(self, error: Exception) -> BackendError:
        """aiohttp's error as one of ours."""
        import aiohttp

        if isinstance(error, aiohttp.ClientSSLError):
            return Unreachable(f"{self.server}: {scrubbed(error)}")
        if isinstance(error, aiohttp.ClientHttpProxyError):
            text = f"{self._proxy}, on the way to {self.server}, answers HTTP {error.status}"
            denied = error.status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED
            return (Denied if denied else ServerFault)(text)
        if isinstance(error, aiohttp.ClientConnectorError):
            by_proxy = isinstance(error, aiohttp.ClientProxyConnectionError)
            return Unreachable(
                f"{self._proxy if by_proxy else self.server}: {_refusal(error.os_error)}"
            )
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            return Unreachable(f"{self.server}: no connection in time")
        if isinstance(error, aiohttp.ServerTimeoutError):
            return ServerFault(f"{self.server} did not answer in time")
        text = scrubbed(error) or type(error).__name__
        return ServerFault(f"{self.server}: the connection was lost: {text}")

    def _opened(self) -> ClientSession:
        import aiohttp

        # The client limits the calls under way, not the connector.
        connector = aiohttp.TCPConnector(limit=0, ssl=_verified() if self._secure else True)
        self._session = aiohttp.ClientSession(
            connector=connector,
            headers=self._headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            proxy=self._proxy.url if self._proxy else None,
            timeout=aiohttp.ClientTimeout(sock_connect=CONNECT_TIMEOUT),
        )
        return self._session

    async def aclose(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            if self._secure:
                # aiohttp closes TLS connections in a later turn of the loop.
                await asyncio.sleep(0)
            self._session = None


def _refusal(error: OSError) -> str:
    """Why no connection was made; asyncio's own text hides it behind addresses."""
    number = error.errno if isinstance(error.errno, int) and error.errno > 0 else None
    return os.strerror(number) if number else scrubbed(error)


def _verified() -> ssl.SSLContext:
    """The trusted certificates; raises Unreachable if SSL_CERT_FILE is not a file of them."""
    import certifi

    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    try:
        # Named here, because OpenSSL by itself ignores a file that it cannot read.
        trusted = file or (None if folder else certifi.where())
        return ssl.create_default_context(cafile=trusted, capath=folder or None)
    except OSError as error:
        raise Unreachable(f"SSL_CERT_FILE ({file}) holds no certificates: {error}") from error
