"""Weights from their publisher over HTTPS; a transfer that was cut goes on where it stopped."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from judge.redact import redacted, without_secrets
from judge.weights.catalog import WeightsFile
from judge.weights.source import Report, SourceUnreachable, WrongBytes, cut, held

if TYPE_CHECKING:
    import httpx

_HUB = "https://huggingface.co"
_CONNECT_SECONDS = 5.0
_STALL_SECONDS = 30.0
_TRIES = 4


def address(url: str) -> str:
    """The URL at the hub that $HF_ENDPOINT names, if it names one."""
    endpoint = os.environ.get("HF_ENDPOINT", "").rstrip("/")
    return endpoint + url.removeprefix(_HUB) if endpoint and url.startswith(_HUB) else url


def fetch(file: WeightsFile, part: Path, report: Report) -> None:
    """Complete `part` from `file.url`.

    A connection that breaks is taken up again, up to three times in a row without a new byte.

    Raises:
        SourceUnreachable: the file has no publisher's URL, nobody answers, or the answer is no.
        WrongBytes: the publisher's file is longer than the catalog says.
    """
    import httpx

    if file.url is None:
        raise SourceUnreachable(f"{file.name} is not published as a file of its own")
    url = address(file.url)
    said = without_secrets(url)
    timeout = httpx.Timeout(_STALL_SECONDS, connect=_CONNECT_SECONDS)
    with httpx.Client(follow_redirects=True, timeout=timeout) as client:
        failures = 0
        while held(part) < file.size:
            before = held(part)
            try:
                _stream(client, url, file, part, report)
            except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as error:
                raise SourceUnreachable(f"cannot reach {said}: {redacted(str(error))}") from error
            except httpx.HTTPError as error:
                failures = 1 if held(part) > before else failures + 1
                if failures == _TRIES:
                    told = f"{said} keeps breaking off: {redacted(str(error))}"
                    raise SourceUnreachable(told) from error
                time.sleep(0.25 * 2**failures)


def _stream(client: httpx.Client, url: str, file: WeightsFile, part: Path, report: Report) -> None:
    """One request for the bytes that `part` lacks."""
    import httpx

    start = held(part)
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={start}-"} if start else {})
    with client.stream("GET", url, headers=headers) as response:
        if response.status_code not in (httpx.codes.OK, httpx.codes.PARTIAL_CONTENT):
            raise SourceUnreachable(f"{without_secrets(url)} answers HTTP {response.status_code}")
        if not _continues(response, start):
            cut(part, 0)
        with part.open("ab") as stream:
            for block in response.iter_raw():
                stream.write(block)
                if stream.tell() > file.size:
                    part.unlink()
                    raise WrongBytes(
                        f"{without_secrets(url)} is longer than the {file.size} bytes expected "
                        f"of {file.name}"
                    )
                report(stream.tell(), f"from {httpx.URL(url).host}")
    if held(part) < file.size:
        raise httpx.ReadError(f"ended after {held(part)} of {file.size} bytes")


def _continues(response: httpx.Response, start: int) -> bool:
    """Whether the answer holds the bytes from `start` on, and not the whole file once more."""
    given: str = response.headers.get("Content-Range", "")
    return response.status_code == 206 and given.startswith(f"bytes {start}-")
