"""Scoped memory: scratch that an instruction takes for itself, and that no buffer shows."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from tb_memplugin.readers.hlo.module import Module

SCOPED = re.compile(
    rb'"used_scoped_memory_configs":\[\{([^\]]*)\}\]',
)
SCOPED_FIELD = re.compile(rb'"(memory_space|size)":"?(\d+)"?')


class Scoped(NamedTuple):
    scoped_bytes: int
    scoped_instruction: str


def scoped_memory(module: Module, space: int) -> Scoped:
    """The largest scoped allocation in a memory space, and whose it is; (0, "") where there is none.

    TPU programs tell it in the instructions' backend configuration, which is JSON.
    """
    best = Scoped(0, "")
    if space == 0:  # the main memory has no scoped allocations, and its programs are the long ones
        return best
    spans = module.instructions["backend_config"]
    for found in SCOPED.finditer(module.data):
        for entry in found.group(1).split(b"},{"):
            fields = {key: int(value) for key, value in SCOPED_FIELD.findall(entry)}
            if fields.get(b"memory_space", 0) == space and fields.get(b"size", 0) > best.scoped_bytes:
                row = int(np.argmax((spans.start <= found.start()) & (found.start() < spans.start + spans.length)))
                best = Scoped(fields[b"size"], module.word(module.instructions["name"], row))
    return best
