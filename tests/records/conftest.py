"""Files that the tests write and read, and the public data if it is there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from judge.records import Record, read

Written = Callable[[str, bytes | str], Path]
ReadBack = Callable[..., list[Record]]


@pytest.fixture
def write(tmp_path: Path) -> Written:
    """Write content to a file of that name and give its path."""

    def write_file(name: str, content: bytes | str) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file


@pytest.fixture
def items(write: Written) -> ReadBack:
    """Write content to a file of that name and read its items."""

    def read_items(name: str, content: bytes | str, **options: object) -> list[Record]:
        return list(read(write(name, content), **options))  # type: ignore[arg-type]

    return read_items


@pytest.fixture(scope="session")
def public_data() -> Path:
    """The folder of public data beside the repository."""
    folder = Path(__file__).parents[2].parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the public data are not here")
    return folder
