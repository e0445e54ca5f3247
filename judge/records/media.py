"""Images, audio, video and files in a JSON value. Judges see the medium's name, not the content."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

MEDIA = {
    **dict.fromkeys(("image", "image_url", "input_image"), "image"),
    **dict.fromkeys(("audio", "audio_url", "input_audio"), "audio"),
    **dict.fromkeys(("video", "video_url", "input_video"), "video"),
    **dict.fromkeys(("file", "input_file"), "file"),
}
"""Types of content parts without text, and their medium."""

_PAYLOAD = {"type", "url", "source", "data", "bytes", "path", "detail", "format", "media_type"}
_PAYLOAD |= {"file_id", "file_data", "filename", "array", "sampling_rate", "expires_at", *MEDIA}
_PAYLOAD |= {"mimeType", "mime_type", "fileUri", "file_uri", "displayName"}

_DATA = re.compile(r"data:(image|audio|video|application)/[\w.+-]+(?:;[\w=.-]+)*;base64,[\w+/=-]*")
_OPAQUE = re.compile(r"(?:https?|s3|gs|file|blob|data):\S*|[\w+/=.:~-]*|[\w ()+/.:-]*\.\w{1,5}")
"""URLs, base64, ids, format names and paths: the parts of a medium that hold nothing to read."""


def data_url(text: str) -> str:
    """The medium of a text that is nothing but one base64 data URL; else ""."""
    match = _DATA.fullmatch(text)
    return match[1].replace("application", "file") if match else ""


def medium(content: Mapping[str, Any]) -> str:
    """The medium in an object: `image`, `audio`, `video` or `file`; "" if there is none."""
    kind = content.get("type")
    if isinstance(kind, str) and kind in MEDIA:
        return MEDIA[kind] if len(content) == 1 or len(_PAYLOAD & content.keys()) > 1 else ""
    if "array" in content and "sampling_rate" in content:
        return "audio"
    if isinstance(content.get("data"), str) and "transcript" in content:
        return "audio"
    mime = next((content[k] for k in ("media_type", "mimeType", "mime_type") if k in content), None)
    if isinstance(mime, str) and any(key in content for key in ("data", "fileUri", "file_uri")):
        form = mime.partition("/")[0]
        if form == "text" and kind != "base64":
            return ""
        return form if form in MEDIA else "file"
    return "file" if content.get("bytes") and content.keys() <= {"bytes", "path"} else ""


def legible(content: object) -> Any:
    """The readable parts of a medium; None if there are none.

    From its payload, URLs, base64, paths, numbers and single words are removed.
    """
    if isinstance(content, dict):
        result = {k: legible(part) if k in _PAYLOAD else part for k, part in content.items()}
        return {k: part for k, part in result.items() if part is not None} or None
    if isinstance(content, list):
        return [result for part in content if (result := legible(part)) is not None] or None
    return content if isinstance(content, str) and not _OPAQUE.fullmatch(content) else None
