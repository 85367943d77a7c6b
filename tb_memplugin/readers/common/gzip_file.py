"""Files that may be compressed with gzip."""

from __future__ import annotations

import io
import zlib
from gzip import BadGzipFile, GzipFile

from tb_memplugin.errors import InputError
from tb_memplugin.readers.common.budget import GZIP_MAGIC, ReadBudget

CHUNK_BYTES = 1 << 20


def decompress(data: bytes | memoryview, budget: ReadBudget) -> bytes | memoryview:
    """Return the content of a file: `data` itself, or what it decompresses to where it is gzip.

    The content is charged to the budget. Raises InputError where it is too large or the gzip stream is damaged.
    """
    if bytes(data[:2]) != GZIP_MAGIC:
        return data
    compressed, content, limit = GzipFile(fileobj=io.BytesIO(data)), io.BytesIO(), budget.content_limit
    try:
        while content.tell() <= limit and (chunk := compressed.read(CHUNK_BYTES)):
            content.write(chunk)
    except (BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"damaged gzip file ({error})", budget.path, "copy or save it again") from error
    if content.tell() > limit:
        raise budget.exceeded(content.tell(), limit)
    budget.charge(content.tell())
    return content.getvalue()
