"""Annotations of live chunks in XLA's allocator dumps (openxla/xla#44246): the program and the buffer of each.

xla.execute{executable=jit_step, device=0} xla.buffer{kind=live_out, allocation_index=3}
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tb_memplugin.model.arrays import U8
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.source_tables import ProgramChunks
from tb_memplugin.model.text import Text

FRAME = re.compile(r"\bxla\.(execute|buffer)\{([^}\n]{0,600})\}")
ARGUMENT = re.compile(r"(\w{1,40})=([^,}\n]{1,300})")
ROLES = (
    ("param", Role.PARAMETER), ("live_out", Role.OUTPUT), ("output", Role.OUTPUT), ("constant", Role.CONSTANT),
    ("temp", Role.TEMPORARY), ("thread_local", Role.THREAD_LOCAL),
)  # fmt: skip


class Annotations(NamedTuple):
    """One entry per chunk; empty texts and -1 where it has no annotation."""

    program: list[str]
    kind: list[str]
    allocation: list[int]

    def names(self, default: str) -> Text:
        """Return the names of the chunks; `default` for those without annotation."""
        return Text.of([_name(*chunk) or default for chunk in zip(*self, strict=True)])

    def roles(self) -> U8:
        roles = [next((role for word, role in ROLES if word in kind), Role.UNKNOWN) for kind in self.kind]
        return np.array(roles, dtype=np.uint8)

    def program_chunks(self) -> ProgramChunks | None:
        if not any(self.program):
            return None
        return ProgramChunks(Text.of(self.program), np.array(self.allocation, dtype=np.int64))


def read_annotations(texts: Sequence[str]) -> Annotations:
    """Parse the annotation of each chunk. Of nested executions and buffers the innermost counts."""
    found = Annotations([], [], [])
    for text in texts:
        arguments = {name: dict(ARGUMENT.findall(content)) for name, content in FRAME.findall(text)}
        buffer = arguments.get("buffer", {})
        index = buffer.get("allocation_index", "").strip()
        found.program.append(arguments.get("execute", {}).get("executable", "").strip())
        found.kind.append(buffer.get("kind", "").strip())
        found.allocation.append(int(index) if index.isdecimal() and len(index) < 10 else -1)
    return found


def _name(program: str, kind: str, allocation: int) -> str:
    number = f"allocation {allocation}" if allocation >= 0 else ""
    return f"{program}: {' '.join(filter(None, (kind, number))) or 'chunk'}" if program else ""
