"""Files that may be compressed with gzip."""

from __future__ import annotations

import io
import zlib
from gzip import BadGzipFile, GzipFile

from tb_memplugin.errors import InputError

GZIP_MAGIC = b"\x1f\x8b"
CHUNK_BYTES = 1 << 20


def decompress(data: bytes | memoryview, path: str, max_bytes: int) -> bytes | memoryview:
    """Return the content of a file: `data` itself, or up to `max_bytes` decompressed from it where it is gzip.

    Raises InputError where the content is larger or the gzip stream is damaged.
    """
    if bytes(data[:2]) != GZIP_MAGIC:
        return data
    compressed, content = GzipFile(fileobj=io.BytesIO(data)), io.BytesIO()
    try:
        # Read in chunks: read(max_bytes) would allocate the maximum size at once.
        while content.tell() <= max_bytes and (chunk := compressed.read(CHUNK_BYTES)):
            content.write(chunk)
    except (BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"damaged gzip file ({error})", path, "copy the file again, or save it again") from error
    if content.tell() > max_bytes:
        raise InputError("too large", path, f"it decompresses to more than {max_bytes >> 30} GiB")
    return content.getvalue()
