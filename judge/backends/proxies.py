"""The environment's proxy for a request; requests to this machine use none."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from judge.errors import UsageError
from judge.redact import without_secrets

_LOCAL_NAMES = ("localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback")


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy's address, and the variable (or the system's settings) that set it."""

    url: str
    source: str

    def __str__(self) -> str:
        return f"the proxy {without_secrets(self.url)} ({self.source})"


def is_loopback(host: str) -> bool:
    """Whether a host's name or address means this machine, in any spelling (127.1, ::1, ...)."""
    name = host.strip("[]").rstrip(".").lower()
    if name in _LOCAL_NAMES or name.endswith(".localhost"):
        return True
    address = _address(name)
    return address is not None and (address.is_loopback or address.is_unspecified)


def _address(name: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(name.partition("%")[0])
    except ValueError:
        with suppress(OSError):
            # Systems also take 127.1 and 0x7f000001.
            return IPv4Address(socket.inet_aton(name))
        return None
    return getattr(address, "ipv4_mapped", None) or address


def proxy_for(scheme: str, host: str) -> Proxy | None:
    """The proxy for an address: HTTPS_PROXY or HTTP_PROXY, else ALL_PROXY; None by NO_PROXY.

    Raises:
        UsageError: it is not an HTTP proxy.
    """
    proxies = getproxies()
    url = proxies.get(scheme) or proxies.get("all")
    if not url or is_loopback(host) or _exempt(host, proxies.get("no", "")):
        return None
    variables = (f"{scheme}_proxy", "all_proxy")
    names = (v for v in (*variables, *map(str.upper, variables)) if os.environ.get(v) == url)
    proxy = Proxy(url if "://" in url else f"http://{url}", next(names, "the system's settings"))
    if (kind := urlsplit(proxy.url).scheme.lower()) not in ("http", "https"):
        raise UsageError(
            f"{proxy} speaks {kind}; judge supports http:// and https:// proxies only: set one in "
            f"{proxy.source}, unset it, or put {host} into NO_PROXY"
        )
    return proxy


def _exempt(host: str, no_proxy: str) -> bool:
    """Whether NO_PROXY has the host: by name, as `urllib` reads it, or by a network (CIDR)."""
    if proxy_bypass(host):
        return True
    address = _address(host.strip("[]"))
    for entry in no_proxy.split(","):
        with suppress(ValueError):
            if address is not None and address in ip_network(
                entry.strip().strip("[]"), strict=False
            ):
                return True
    return False


def direct_to_loopback() -> AbstractContextManager[None]:
    """Within the block, libraries that read NO_PROXY use no proxy to this machine."""
    names = [name for name in ("no_proxy", "NO_PROXY") if name in os.environ] or ["no_proxy"]
    hosts = "localhost,127.0.0.1,::1"
    return environment({n: ",".join(filter(None, (os.environ.get(n), hosts))) for n in names})


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables within the block, and restore the old ones."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
