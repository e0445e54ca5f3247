"""HTTP to one model server: kept-alive connections, bounded answers, faults as our own errors.

aiohttp, because a call through it costs a quarter of the CPU time that one through httpx2 does, and
a tenth of one through the openai package (docs/performance.md, bench/throughput.py).
"""

from __future__ import annotations

import asyncio
import os
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlencode, urljoin, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

from judge.backends.faults import scrubbed
from judge.errors import Denied, ServerFault, Unreachable, UsageError
from judge.redact import secrets_of_address, without_secrets

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

CONNECT_TIMEOUT = 10.0
"""Seconds to reach the server."""

SILENCE_TIMEOUT = 300.0
"""Seconds without a byte until a fetch is given up."""

LONGEST_ANSWER = 2 * 1024 * 1024
"""Bytes, unpacked. The parsed JSON may take sixty times as much memory."""

_PATH = "/chat/completions"
_MOVED = frozenset((301, 302, 303, 307, 308))


@dataclass(frozen=True, slots=True)
class Answered:
    """What a server answered: HTTP status, headers (names in any case), body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Wire:
    """The way to one address. `server` is that address without secrets.

    `open_to_all` says that what is sent leaves this machine unencrypted.

    A user name and password in the address are sent as HTTP's basic authentication; the proxies
    that the environment names (HTTPS_PROXY, NO_PROXY, ...) are used. Certificates are always
    verified, against SSL_CERT_FILE or SSL_CERT_DIR where those are set, else against certifi's.
    `secrets` are those of the address and the headers; redact them in what the server answers.

    Raises:
        UsageError: the address cannot be used.
    """

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        try:
            parts = urlsplit(url)
            port = f":{parts.port}" if parts.port is not None else ""
        except ValueError:
            # The library's own words hold the part that it stumbled over, which may be a password.
            raise UsageError(
                "the address cannot be used: host or port is none. In a user name or password, "
                "characters such as / @ : ? # are written as %2F %40 %3A %3F %23"
            ) from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError("the address does not begin with http:// or https:// and a host")
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        path = parts.path.rstrip("/")
        self.server = without_secrets(url)
        self._base = (parts.scheme, host + port, path, parts.query)
        self._url = self._at(_PATH)
        self._headers = {"Content-Type": "application/json", **headers}
        if parts.username is not None:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._headers["Authorization"] = f"Basic {b64encode(login.encode()).decode()}"
        # The key of `Bearer KEY`, too.
        sent = self._headers.get("Authorization", "").partition(" ")[2]
        self.secrets = frozenset((*secrets_of_address(url), sent))
        self._secure = parts.scheme == "https"
        self._proxy = None if proxy_bypass(host) else getproxies().get(parts.scheme)
        self.open_to_all = not self._secure and not _loopback(parts.hostname)
        self._session: ClientSession | None = None

    async def post(self, body: bytes) -> Answered:
        """Send one request and read all of its answer, whatever its status.

        Raises:
            Unreachable: no server was spoken to.
            ServerFault: the connection was lost, or the answer never ended or was too long.
            Denied: the server redirects; what is sent is for this address alone.
        """
        with self._faults():
            async with (self._session or self._opened()).post(
                self._url, data=body, proxy=self._proxy, allow_redirects=False
            ) as response:
                read = await self._read(response)
        if response.status in _MOVED and "Location" in response.headers:
            raise Denied(
                f"{self.server} sends its callers on to "
                f"{self._elsewhere(response.headers['Location'])} (HTTP {response.status}). "
                "Neither records nor key are sent there; if that is the right address, name it "
                "instead"
            )
        return Answered(response.status, response.headers, read)

    def _elsewhere(self, location: str) -> str:
        try:
            return without_secrets(urljoin(self._url, location)).removesuffix(_PATH)
        except ValueError:
            return "an address that is none"

    async def fetch(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        data: bytes | AsyncIterator[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
        into: Callable[[bytes], object] | None = None,
    ) -> Answered:
        """One request to another `path` of the server, such as /batches.

        `into` is given the body of a success piece by piece, however long it is; the answer's own
        body is empty then.

        Raises:
            Unreachable, ServerFault: as `post`, and after `SILENCE_TIMEOUT` without a byte.
        """
        import aiohttp

        session = self._session or self._opened()
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_TIMEOUT, sock_read=SILENCE_TIMEOUT
        )
        asked = session.request(
            method,
            self._at(path, query),
            data=data,
            headers=headers,
            proxy=self._proxy,
            timeout=timeout,
            # The key goes to no other host; neither do records.
            allow_redirects=data is None,
        )
        with self._faults():
            async with asked as response:
                if into is None or response.status >= 300:
                    return Answered(response.status, response.headers, await self._read(response))
                async for part in response.content.iter_any():
                    into(part)
                return Answered(response.status, response.headers, b"")

    def _at(self, path: str, query: Mapping[str, str] | None = None) -> str:
        scheme, place, base, own = self._base
        asked = "&".join(filter(None, (own, urlencode(query or {}))))
        return urlunsplit((scheme, place, base + path, asked, ""))

    @contextmanager
    def _faults(self) -> Iterator[None]:
        import aiohttp

        try:
            yield
        except aiohttp.ClientSSLError as error:
            raise Unreachable(f"{self.server}: {scrubbed(error)}") from error
        except aiohttp.ClientConnectorError as error:
            raise Unreachable(f"{self.server}: {_refusal(error.os_error)}") from error
        except aiohttp.ServerTimeoutError as error:
            if isinstance(error, aiohttp.ConnectionTimeoutError):
                raise Unreachable(f"{self.server}: no connection in time") from error
            raise ServerFault(f"{self.server} did not answer in time") from error
        except (aiohttp.ClientError, ConnectionError, ValueError) as error:
            told = scrubbed(error) or type(error).__name__
            raise ServerFault(f"{self.server}: the connection was lost: {told}") from error

    async def _read(self, response: ClientResponse) -> bytes:
        told = response.content_length
        if told is not None and "Content-Encoding" not in response.headers:
            self._refuse_long(told)
            return await response.read()
        parts: list[bytes] = []
        size = 0
        async for part in response.content.iter_any():
            size += len(part)
            self._refuse_long(size)
            parts.append(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _refuse_long(self, size: int) -> None:
        if size > LONGEST_ANSWER:
            raise ServerFault(f"{self.server}: the answer is longer than {LONGEST_ANSWER} bytes")

    def _opened(self) -> ClientSession:
        import aiohttp

        # How many calls are under way is the limiter's to say, not the connector's.
        connector = aiohttp.TCPConnector(limit=0, ssl=_verified() if self._secure else True)
        self._session = aiohttp.ClientSession(
            connector=connector,
            headers=self._headers,
            # How long an answer may take is the client's to say, not the connection's.
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT),
            cookie_jar=aiohttp.DummyCookieJar(),
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
    """Why no connection came about; asyncio's own text hides it behind addresses."""
    number = error.errno if isinstance(error.errno, int) and error.errno > 0 else None
    return os.strerror(number) if number else scrubbed(error)


def _loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _verified() -> ssl.SSLContext:
    """Whom to trust; nothing in the environment turns the verification off.

    Raises:
        Unreachable: SSL_CERT_FILE names no file of certificates, or SSL_CERT_DIR no folder.
    """
    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    if not (file or folder):
        import certifi

        return ssl.create_default_context(cafile=certifi.where())
    if folder and not Path(folder).is_dir():
        raise Unreachable(f"SSL_CERT_DIR ({folder}) is no folder")
    context = ssl.create_default_context()
    if file:
        try:
            # OpenSSL reads it by itself, and says nothing where it cannot.
            context.load_verify_locations(file)
        except OSError as error:
            raise Unreachable(f"SSL_CERT_FILE ({file}) holds no certificates: {error}") from error
    return context
