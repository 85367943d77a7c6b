"""Mutations of watch files: integers of records replaced, records removed, repeated and cut."""

from __future__ import annotations

import struct
from random import Random

from tb_memplugin.errors import InputError
from tb_memplugin.readers.watch_layout import read_header

ODD = (-1, 0, 1, -2, 2**31, 2**50, 2**50 + 1, 2**63 - 1, -(2**63), 1_800_000_000_000_000_000)


def mutate_watch(data: bytes, rng: Random) -> bytes:
    """Return a file with a few changed integers or records; files without a header as they are."""
    try:
        header, begin = read_header(data, "")
    except InputError:
        return data
    width = 8 * header.width
    content = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        count = (len(content) - begin) // 8
        if count < 1:
            break
        at = begin + 8 * rng.randrange(count)
        match rng.randrange(5):
            case 0 | 1:
                content[at : at + 8] = struct.pack("<q", rng.choice(ODD))
            case 2:
                del content[at : at + width]
            case 3:
                content[at:at] = content[at : at + width] * rng.randint(1, 50)
            case _:
                del content[at + rng.randrange(9) :]
    return bytes(content)
