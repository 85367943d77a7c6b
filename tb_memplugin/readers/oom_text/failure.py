"""An out-of-memory failure as parsed from a text, its listed buffers as columns, and what the parsers share."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import zip_longest
from typing import Any

import numpy as np

from tb_memplugin.model.caveats import Caveat
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.out_of_memory import OutOfMemory
from tb_memplugin.model.tables import Allocations, ProgramChunks, Regions, Stacks
from tb_memplugin.model.text import Text
from tb_memplugin.readers.common import table_builder
from tb_memplugin.sizes import printed_size

MAX_TOTAL_BYTES = 2**53  # larger sums would be inexact as floats, and no memory is that large


@dataclass(frozen=True, slots=True)
class Buffer:
    """A buffer described by name. Sizes in bytes."""

    size: int
    requested: int | None = None  # without padding; None: equal to `size`
    name: str = ""
    op: str = ""
    op_name: str = ""
    shape: str = ""
    role: Role = Role.UNKNOWN
    source: tuple[str, int] | None = None  # file, line


@dataclass(frozen=True, slots=True)
class Rows:
    """Named buffers, or an allocator's chunks with addresses."""

    allocations: Allocations
    regions: Regions
    stacks: Stacks
    program_chunks: ProgramChunks | None = None

    def __len__(self) -> int:
        return len(self.allocations)

    @property
    def bytes(self) -> int:
        return int(self.allocations.charge.sum())


def named_buffers(buffers: Sequence[Buffer]) -> Rows:
    """Build rows from named buffers, with stacks of one frame each from their source lines."""
    sources = list(dict.fromkeys(buffer.source for buffer in buffers if buffer.source))
    frame = {source: number for number, source in enumerate(sources)}
    shapes = [buffer.shape for buffer in buffers]
    allocations = table_builder.allocations(
        np.array([buffer.size for buffer in buffers], dtype=np.int64),
        requested=np.array([b.size if b.requested is None else b.requested for b in buffers], dtype=np.int64),
        role=np.array([int(buffer.role) for buffer in buffers], dtype=np.uint8),
        stack=np.array([frame.get(buffer.source, -1) if buffer.source else -1 for buffer in buffers], dtype=np.int32),
        name=Text.of([buffer.name for buffer in buffers]),
        shape=Text.of(shapes),
        dtype=Text.of([dtype_of(shape) for shape in shapes]),
        op=Text.of([buffer.op for buffer in buffers]),
        op_name=Text.of([buffer.op_name for buffer in buffers]),
    )
    stacks = Stacks(
        parent=np.full(len(sources), -1, dtype=np.int32),
        function=Text.of([""] * len(sources)),
        file=Text.of([file for file, _ in sources]),
        line=np.array([line for _, line in sources], dtype=np.int32),
    )
    return Rows(allocations, table_builder.no_regions(), stacks)


@cache
def no_rows() -> Rows:
    """Return the rows of a failure that lists nothing."""
    return named_buffers([])


def dtype_of(shape: str) -> str:
    """Return the dtype of a shape, `bf16` of `bf16[4,512]{1,0}`; empty for a tuple."""
    dtype, bracket, _ = shape.partition("[")
    return dtype if bracket and dtype.isalnum() else ""


OP_NAME = re.compile(r'op_name="([^"\n]{0,4000})')  # also matches a name that is cut off
SOURCE = re.compile(r'source_file="([^"\n]{1,1000})"\s+source_line=(\d{1,9})')


def found_text(pattern: re.Pattern[str], text: str) -> str:
    """Return what the first group of a pattern matches; empty where the text has none."""
    found = pattern.search(text)
    return found[1] if found else ""


def source_of(text: str) -> tuple[str, int] | None:
    """Return (file, line), None where the text has none."""
    found = SOURCE.search(text)
    return (found[1], min(int(found[2]), 2**31 - 1)) if found else None


# A job that retries may log thousands of failures. The last ones ended it.
MAX_FAILURES = 50
BLOCK_CHARS = 1 << 21  # exceeds any message; an allocator's dump has its own end


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure that the text describes from offset `at`. Sizes in bytes, None where the text lacks them.

    `used`: bytes in use or, when compiling, needed by the program; the rows may explain less.
    `cut`: the text ends inside its list of buffers.
    """

    at: int
    tool: str  # equal tool and size mean one failure reported twice
    memory: str
    out_of_memory: OutOfMemory
    rows: Rows = field(default_factory=no_rows)
    used: int | None = None
    lifetime_peak: int | None = None
    program: str = ""
    cut: bool = False
    worker: str = ""  # that wrote it, where several write to the text
    caveats: tuple[Caveat, ...] = ()

    def saying(self, **fields: Any) -> Failure:
        """Return the failure with other values in these fields of its OutOfMemory."""
        return replace(self, out_of_memory=replace(self.out_of_memory, **fields))


def last_matches(pattern: re.Pattern[str], text: str) -> list[re.Match[str]]:
    """Return the last MAX_FAILURES matches, in order."""
    return list(deque(pattern.finditer(text), MAX_FAILURES))


TextItem = tuple[re.Match[str], str]  # with the text that follows the match


def split_at(matches: list[re.Match[str]], text: str) -> list[TextItem]:
    """Return each match with the text from its end to the next match."""
    ends = [min(following.start() if following else len(text), match.end() + BLOCK_CHARS)
            for match, following in zip_longest(matches, matches[1:])]  # fmt: skip
    return [(match, text[match.end() : end]) for match, end in zip(matches, ends, strict=True)]


RULE = re.compile(r"={10,}")  # after each item of a compiler's list


def listed_items(heading: re.Pattern[str], item: re.Pattern[str], block: str) -> tuple[list[TextItem], bool]:
    """Return the items of a compiler's list, each with its text, and whether the message ends inside the list."""
    head = heading.search(block)
    items = split_at(list(item.finditer(block, head.end() if head else 0)), block)
    return items, not RULE.search(items[-1][1]) if items else head is not None


def size_of(match: re.Match[str] | None, group: int | str = 1) -> int | None:
    """Return the bytes in a group of a match; None where either is missing."""
    text = match[group] if match else None
    return printed_size(text) if text else None
