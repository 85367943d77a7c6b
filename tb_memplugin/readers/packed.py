"""Files that may be packed by gzip."""

from __future__ import annotations

import io
import zlib
from gzip import BadGzipFile, GzipFile

from tb_memplugin.errors import InputError

GZIP = b"\x1f\x8b"


def unpacked(data: bytes | memoryview, path: str, most: int) -> bytes | memoryview:
    """The content, at most `most` bytes where it is packed. InputError where it is larger, or damaged."""
    if bytes(data[:2]) != GZIP:
        return data
    try:
        raw = GzipFile(fileobj=io.BytesIO(data)).read(most + 1)
    except (BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"damaged, it does not unpack ({error})", path, "copy it again, or save it again") from error
    if len(raw) > most:
        raise InputError("too large", path, f"it unpacks to more than {most >> 30} GiB")
    return raw
