"""A hidden state as text: numbers of half precision, little-endian, in base64."""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Sequence

State = Sequence[float]
"""The numbers of a prompt's last token after a layer of the model, as many as the layer is wide."""


def packed(state: State) -> str:
    """The state as text, each number to 11 significant bits (a share of 0.0005 of it).

    Raises:
        OverflowError: a number is beyond 65,504.
    """
    return base64.b64encode(struct.pack(f"<{len(state)}e", *state)).decode()


def unpacked(text: str) -> tuple[float, ...]:
    """The state that was `packed`; raises ValueError for any other text."""
    try:
        plain = base64.b64decode(text, validate=True)
        return struct.unpack(f"<{len(plain) // 2}e", plain)
    except (binascii.Error, struct.error) as error:
        raise ValueError(f"no state: {error}") from error
