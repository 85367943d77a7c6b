"""ScopedMemory memory: an instruction's own scratch space, which no logical buffer represents."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from tb_memplugin.readers.hlo.module.tables import CONFIGS, HloModule

SCOPED = re.compile(rb'"used_scoped_memory_configs":\[\{([^\[\]]*)\}\]')
SCOPED_FIELD = re.compile(rb'"(memory_space|size)":"?(\d{1,18})"?')


class ScopedMemory(NamedTuple):
    scoped_bytes: int
    scoped_instruction: str


def scoped_memory(module: HloModule, space: int) -> ScopedMemory:
    """Return the largest scoped allocation of a memory space and its instruction; (0, "") where there is none.

    TPU programs record it in the instructions' backend configuration, which is JSON.
    """
    most, at = 0, 0
    if space == 0:  # main memory has no scoped allocations, and the search would be slow in its long programs
        return ScopedMemory(0, "")
    for found in SCOPED.finditer(module.data):
        for entry in found.group(1).split(b"},{"):
            fields = {key: int(value) for key, value in SCOPED_FIELD.findall(entry)}
            if fields.get(b"memory_space", 0) == space and fields.get(b"size", 0) > most:
                most, at = fields[b"size"], found.start()
    if not most:
        return ScopedMemory(0, "")
    rows, spans = module.tables[CONFIGS]["parent"], module.tables[CONFIGS]["value"]
    row = next(iter(rows[(spans.start <= at) & (at < spans.start + spans.length)].tolist()), 0)
    return ScopedMemory(most, module.names(np.array([row]))[0])
