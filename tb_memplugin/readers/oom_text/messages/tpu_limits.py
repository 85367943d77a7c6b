"""Messages of the TPU compiler about an exceeded limit, and of the TPU runtime about what does not fit.

Those of the runtime:

Error loading program 'jit_step': Attempting to reserve 29.49G at the bottom of memory. That was not possible.
There are 147.64M free, 0B reserved, and 147.64M reservable.
Error allocating device buffer: Attempting to allocate 31.06M. That was not possible. There are 58.64M free.
Due to fragmentation, the largest contiguous region of free memory is 30.56M.; (0x0x0_HBM0)
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from tb_memplugin.model.out_of_memory import OutOfMemory, OutOfMemoryPhase
from tb_memplugin.readers.oom_text.failure import Buffer, Failure, last_matches, named_buffers, size_of
from tb_memplugin.readers.oom_text.messages.tpu_compile import kernel_buffer, row_of
from tb_memplugin.sizes import PRINTED as SIZE
from tb_memplugin.sizes import printed_size

MARKS = (
    "exceeding available bytes", "would exceed memory", "while allocating on stack", " capacity",
    "Aborting compilation early", "Ran out of memory on ", "That was not possible",
)  # fmt: skip
CORES = re.compile(
    rf"TPU TensorCore Hbm usage: ({SIZE}), SparseCore Hbm usage:? ({SIZE}), exceeding available bytes: ({SIZE})"
)
ALLOCATION = re.compile(
    r"Allocation \(size=(\d{1,18})\) would exceed memory \(size=(\d{1,18})\)"
    r"(?: :: (#\w{1,60}) ?(?:\[([^\n]{0,4000}?)\](?= ::|\s{0,40}$|\n))?(?: :: ([^\n]{1,400}))?)?"
)
STACK = re.compile(
    r"Ran out of memory in memory space (\w{1,20}) while allocating on stack for "
    r"((?:(?!\s{1,8}Scoped allocation with|Ran out of memory in)[^\n]){1,8000})"
    rf"(?:\s{{1,8}}Scoped allocation with size ({SIZE}) and limit ({SIZE}))?"
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
RUNTIME = re.compile(
    r"(?:Error loading program(?: '(?P<program>[^'\n]{1,300})')?:\s+)?"
    rf"Attempting to (?P<verb>allocate|reserve) (?P<asked>{SIZE})(?: at the bottom of memory)?\.\s+"
    rf"That was not possible\.\s+There are (?P<free>{SIZE}) free"
    rf"(?:,\s+(?P<reserved>{SIZE}) reserved,\s+and (?P<reservable>{SIZE}) reservable)?"
    rf"(?:\.\s+(?:Due to fragmentation, the|The) largest contiguous region of free memory is (?P<largest>{SIZE}))?"
)
DEVICE = re.compile(r"[^\n]{0,200}?\((\d{1,4}x\d{1,4}x\d{1,4}_\w{1,20})\)")
SPACE = re.compile(r"\bspace ?= ?'?(\w{1,20})")
SHAPE = re.compile(r"\bshape ?= ?'([^'\n]{1,400})'")
TAG = re.compile(r"\btag ?= ?'([^'\n]{1,2000})'?")


def find(text: str) -> Iterator[Failure]:
    readers: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Failure]], ...] = (
        (CORES, _cores), (ALLOCATION, _allocation), (STACK, _stack),
        (ESTIMATE, _estimate), (EARLY, _early), (TEMPORARIES, _temporaries), (RUNTIME, _runtime),
    )  # fmt: skip
    for pattern, read in readers:
        yield from map(read, last_matches(pattern, text))


def _failure(
    match: re.Match[str], memory: str, asked: int | None, capacity: int | None, wanted_by: str = "", program: str = ""
) -> Failure:
    phase = OutOfMemoryPhase.COMPILE
    out_of_memory = OutOfMemory(asked=asked, capacity=capacity, phase=phase, wanted_by=wanted_by, program=program)
    return Failure(match.start(), "tpu", _memory(memory), out_of_memory, used=asked, program=program)


def _memory(name: str) -> str:
    """Return the name that recordings of programs have for a memory."""
    return "Sflag" if name.lower() == "sflag" else name.upper()


def _cores(match: re.Match[str]) -> Failure:
    """Parse the usage of TensorCores and SparseCores, which share one memory."""
    tensor, sparse = size_of(match, 1) or 0, size_of(match, 2) or 0
    rows = named_buffers([Buffer(tensor, name="TensorCore"), Buffer(sparse, name="SparseCore")])
    out_of_memory = OutOfMemory(asked=tensor + sparse, capacity=size_of(match, 3), phase=OutOfMemoryPhase.COMPILE)
    return Failure(match.start(), "tpu", "HBM", out_of_memory, rows, used=tensor + sparse)


def _allocation(match: re.Match[str]) -> Failure:
    attributes = match[4] or ""
    space, tag, shape = (pattern.search(attributes) for pattern in (SPACE, TAG, SHAPE))
    memory, asked, program = _memory(space[1]) if space else "HBM", int(match[1]), (match[5] or "").strip()
    if tag is None or memory == "HBM":
        return _failure(match, memory, asked, int(match[2]), (tag[1] if tag else "") or program or match[3] or "")
    buffer = kernel_buffer(tag[1], asked, shape[1] if shape else "")
    out_of_memory = OutOfMemory(
        asked, capacity=int(match[2]), phase=OutOfMemoryPhase.COMPILE, kernel_buffers=(buffer,),
        wanted_by=f"{buffer.operand} of {program}" if program else buffer.operand,
    )  # fmt: skip
    return Failure(match.start(), "tpu", memory, out_of_memory, named_buffers([row_of(buffer, program)]), used=asked)


def _stack(match: re.Match[str]) -> Failure:
    """Parse the failure of one kernel, for which the compiler has a limit below the size of the memory."""
    wanted_by = match[2].partition(" = ")[0].strip().rstrip(".").removeprefix("%")[:300]
    failure = _failure(match, match[1], size_of(match, 3), size_of(match, 4), wanted_by)
    return replace(failure, out_of_memory=replace(failure.out_of_memory, kernel_limit=match[3] is not None))


def _estimate(match: re.Match[str]) -> Failure:
    """Parse the estimate for a Pallas kernel, which is printed in powers of 1000."""
    asked, capacity = printed_size(match[1], decimal=True), printed_size(match[2], decimal=True)
    return _failure(match, match[3], asked, capacity)


def _early(match: re.Match[str]) -> Failure:
    return _failure(match, "HBM", size_of(match, 1), size_of(match, 2))


def _temporaries(match: re.Match[str]) -> Failure:
    return _failure(match, match[1], size_of(match, 2), size_of(match, 3), program=match[4] or "")


def _runtime(head: re.Match[str]) -> Failure:
    """Parse a buffer or a program that the runtime could not place."""
    device = DEVICE.match(head.string, head.end())
    reserving = head["verb"] == "reserve"
    loading = reserving or "loading program" in head[0]
    out_of_memory = OutOfMemory(
        asked=size_of(head, "asked"),
        free=size_of(head, "free"),
        # A program is loaded at one end of the memory, so only free bytes at that end count.
        largest_free=size_of(head, "reservable" if reserving else "largest"),
        phase=OutOfMemoryPhase.LOAD if loading else OutOfMemoryPhase.RUN,
        wanted_by=head["program"] or "",
    )
    memory = f"HBM {device[1]}" if device else "HBM"
    return Failure(head.start(), "tpu", memory, out_of_memory, program=head["program"] or "")
