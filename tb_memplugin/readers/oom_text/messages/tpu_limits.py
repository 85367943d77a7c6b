"""One-line messages of the TPU compiler about an exceeded limit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from tb_memplugin.model.out_of_memory import OutOfMemory, OutOfMemoryPhase
from tb_memplugin.readers.oom_text.failure import Failure, last_matches, size_of
from tb_memplugin.readers.oom_text.rows import Buffer, named_buffers
from tb_memplugin.sizes import PRINTED as SIZE
from tb_memplugin.sizes import printed_size

MARKS = (
    "exceeding available bytes", "would exceed memory", "while allocating on stack", " capacity",
    "Aborting compilation early", "Ran out of memory on ",
)  # fmt: skip
CORES = re.compile(
    rf"TPU TensorCore Hbm usage: ({SIZE}), SparseCore Hbm usage:? ({SIZE}), exceeding available bytes: ({SIZE})"
)
ALLOCATION = re.compile(
    r"Allocation \(size=(\d{1,18})\) would exceed memory \(size=(\d{1,18})\)"
    r"(?: :: (#\w{1,60}) ?(?:\[([^\n]{0,2000}?)\](?= ::|\s*$|\n))?(?: :: ([^\n]{1,400}))?)?"
)
STACK = re.compile(
    r"Ran out of memory in memory space (\w{1,20}) while allocating on stack for ([^\n]{1,4000})"
    rf"(?:\s+Scoped allocation with size ({SIZE}) and limit ({SIZE}))?"
)
ESTIMATE = re.compile(rf"Estimated ({SIZE}) exceeds ({SIZE}) (\w{{1,20}}) capacity")
EARLY = re.compile(
    r"Aborting compilation early because it's unlikely to have enough (?:\w{1,20} )?memory\. "
    rf"Requires ({SIZE}), has ({SIZE}) available"
)
TEMPORARIES = re.compile(
    rf"Ran out of memory on (\w{{1,20}}), the total memory required for HLO temporaries \(({SIZE})\) "
    rf"exceeds available \w{{1,20}} \(({SIZE})\)\.(?: HLO module: ([\w.<>-]{{1,300}}[\w>]))?"
)
ATTRIBUTE = r"{} = '?([^',\]]{{1,300}})"
SPACE = re.compile(ATTRIBUTE.format("space"))
TAG = re.compile(ATTRIBUTE.format("tag"))


def find(text: str) -> Iterator[Failure]:
    readers: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Failure]], ...] = (
        (CORES, _cores), (ALLOCATION, _allocation), (STACK, _stack),
        (ESTIMATE, _estimate), (EARLY, _early), (TEMPORARIES, _temporaries),
    )  # fmt: skip
    for pattern, read in readers:
        yield from map(read, last_matches(pattern, text))


def _failure(
    match: re.Match[str], memory: str, asked: int | None, capacity: int | None, wanted_by: str = "", program: str = ""
) -> Failure:
    out_of_memory = OutOfMemory(asked=asked, capacity=capacity, phase=OutOfMemoryPhase.COMPILE, wanted_by=wanted_by)
    return Failure(match.start(), "tpu", memory.upper(), out_of_memory, used=asked, program=program)


def _cores(match: re.Match[str]) -> Failure:
    """Parse the usage of TensorCores and SparseCores, which share one memory."""
    tensor, sparse = size_of(match, 1) or 0, size_of(match, 2) or 0
    rows = named_buffers([Buffer(tensor, name="TensorCore"), Buffer(sparse, name="SparseCore")])
    out_of_memory = OutOfMemory(asked=tensor + sparse, capacity=size_of(match, 3), phase=OutOfMemoryPhase.COMPILE)
    return Failure(match.start(), "tpu", "HBM", out_of_memory, rows, used=tensor + sparse)


def _allocation(match: re.Match[str]) -> Failure:
    attributes = match[4] or ""
    space, tag = SPACE.search(attributes), TAG.search(attributes)
    wanted_by = (tag[1] if tag else "") or (match[5] or "").strip() or match[3] or ""
    return _failure(match, space[1] if space else "HBM", int(match[1]), int(match[2]), wanted_by)


def _stack(match: re.Match[str]) -> Failure:
    wanted_by = match[2].partition(" = ")[0].strip().rstrip(".")[:300]
    return _failure(match, match[1], size_of(match, 3), size_of(match, 4), wanted_by)


def _estimate(match: re.Match[str]) -> Failure:
    """Parse the estimate for a Pallas kernel, which is printed in powers of 1000."""
    asked, capacity = printed_size(match[1], decimal=True), printed_size(match[2], decimal=True)
    return _failure(match, match[3], asked, capacity)


def _early(match: re.Match[str]) -> Failure:
    return _failure(match, "HBM", size_of(match, 1), size_of(match, 2))


def _temporaries(match: re.Match[str]) -> Failure:
    return _failure(match, match[1], size_of(match, 2), size_of(match, 3), program=match[4] or "")
