"""Files that may be compressed with gzip."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import numpy as np

from tb_memplugin.errors import InputError
from tb_memplugin.readers.common.budget import GZIP_MAGIC, ReadBudget

CHUNK_BYTES = 1 << 20
# zlib copies the rest of its input at the end of each member, and a file may have a member every 20 bytes.
INPUT_BYTES = 1 << 15
GZIP_FORMAT = 16 + zlib.MAX_WBITS  # zlib then checks the length and the checksum, too


def decompress(data: bytes | memoryview, budget: ReadBudget) -> bytes | memoryview:
    """Return the content of a file: `data` itself, or what it decompresses to where it is gzip.

    The content is charged to the budget. Raises InputError where it is too large or the gzip stream is damaged.
    """
    if bytes(data[:2]) != GZIP_MAGIC:
        return data
    limit, done = budget.content_limit, 0
    content = np.empty(min(int.from_bytes(data[-4:], "little"), limit), np.uint8)  # the file ends with its length
    try:
        for chunk in _chunks(memoryview(data)):
            begin, done = done, done + len(chunk)
            if done > limit:
                raise budget.exceeded(done, limit)
            if done > len(content):  # there are several members
                content = np.concatenate([content[:begin], np.empty(min(2 * done, limit) - begin, np.uint8)])
            content[begin:done] = np.frombuffer(chunk, np.uint8)
    except (EOFError, zlib.error) as error:
        raise InputError(f"damaged gzip file ({error})", budget.path, "copy or save it again") from error
    budget.charge(done)
    return content[:done].data.toreadonly()


def _chunks(data: memoryview) -> Iterator[bytes]:
    """Yield the content of all members, which may be padded with zeros. EOFError where the last one is cut short."""
    member = zlib.decompressobj(GZIP_FORMAT)
    for begin in range(0, len(data), INPUT_BYTES):
        rest: bytes | memoryview = data[begin : begin + INPUT_BYTES]
        while len(rest):
            if member.eof:
                if not (rest := bytes(rest).lstrip(b"\0")):
                    break
                member = zlib.decompressobj(GZIP_FORMAT)
            yield member.decompress(rest, CHUNK_BYTES)
            rest = member.unused_data if member.eof else member.unconsumed_tail
    while not member.eof:
        if not (chunk := member.decompress(b"", CHUNK_BYTES)):
            raise EOFError("Compressed file ended before the end-of-stream marker was reached")
        yield chunk
