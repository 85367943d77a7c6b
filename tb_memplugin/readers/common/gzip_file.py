"""Files that may be packed by gzip."""

from __future__ import annotations

import io
import zlib
from gzip import BadGzipFile, GzipFile

from tb_memplugin.errors import InputError

GZIP = b"\x1f\x8b"
PIECE = 1 << 20


def unpacked(data: bytes | memoryview, path: str, most: int) -> bytes | memoryview:
    """The content, at most `most` bytes where it is packed. InputError where it is larger, or damaged."""
    if bytes(data[:2]) != GZIP:
        return data
    packed, content = GzipFile(fileobj=io.BytesIO(data)), io.BytesIO()
    try:
        # In pieces: asked for all of it, GzipFile makes room for all that it may be.
        while content.tell() <= most and (piece := packed.read(PIECE)):
            content.write(piece)
    except (BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"damaged, it does not unpack ({error})", path, "copy it again, or save it again") from error
    if content.tell() > most:
        raise InputError("too large", path, f"it unpacks to more than {most >> 30} GiB")
    return content.getvalue()
