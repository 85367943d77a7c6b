"""PyTorch's messages, as worded in versions 1.0 to 2.15, for CUDA and other devices.

CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 7.79 GiB total capacity; 6.21 GiB already allocated;
14.06 MiB free; 6.28 GiB reserved in total by PyTorch)
CUDA out of memory. Tried to allocate 1.16 GiB. GPU 0 has a total capacity of 31.36 GiB of which 471.69 MiB is
free. Including non-PyTorch memory, this process has 16.63 GiB memory in use. Process 19239 has 14.26 GiB memory
in use. Of the allocated memory 15.03 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but
unallocated.
MPS backend out of memory (MPS allocated: 17.94 GB, other allocations: 384.00 KB, max allowed: 18.13 GB). Tried to
allocate 256.00 MB on private pool.
"""

import re
from collections.abc import Iterator

from tb_memplugin.model.caveats import Caveat, CaveatCode
from tb_memplugin.model.out_of_memory import OutOfMemory
from tb_memplugin.readers.oom_text.failure import Buffer, Failure, blocks, last_matches, named_buffers, size_of
from tb_memplugin.sizes import PRINTED as SIZE

MARKS = ("ut of memory",)
HEAD = re.compile(rf"\b([A-Z]{{2,8}}) out of memory\.\s+Tried to allocate ({SIZE})")
MPS = re.compile(
    rf"MPS backend out of memory \(MPS allocated: ({SIZE}), other allocations: ({SIZE}), max allowed: ({SIZE})\)\."
    rf"\s+Tried to allocate ({SIZE})"
)
BARE = re.compile(r"CUDA error: out of memory(?! \(CUDA_ERROR)|cuda runtime error \(2\) : out of memory")
MESSAGE_CHARS = 2000

GPU = re.compile(r"\bGPU (\d{1,5})")
TOTAL = re.compile(rf"total capac(?:i)?ty of\s+({SIZE})|({SIZE})\s+total capacity")
FREE = re.compile(rf"of which\s+({SIZE})\s+is\s+free|({SIZE})\s+free\b")
ALLOWED = re.compile(rf"({SIZE})\s+allowed")
ALLOCATED = re.compile(rf"({SIZE})\s+(?:is\s+allocated by PyTorch|already allocated)")
PRIVATE = re.compile(rf"with\s+({SIZE})\s+allocated in private pools")
UNALLOCATED = re.compile(rf"({SIZE})\s+is\s+reserved by PyTorch but\s+unallocated")
RESERVED = re.compile(rf"({SIZE})\s+(?:reserved in total by PyTorch|cached)")
PROCESS = re.compile(rf"Process (\d{{1,10}}) has\s+({SIZE})\s+memory in use")


def find(text: str) -> Iterator[Failure]:
    for head, block in blocks(HEAD, text):
        yield _failure(head, block[:MESSAGE_CHARS])
    yield from map(_mps, last_matches(MPS, text))
    for match in last_matches(BARE, text):
        yield Failure(match.start(), "torch", "GPU", OutOfMemory())


def _failure(head: re.Match[str], message: str) -> Failure:
    asked, total, free = size_of(head, 2), _size(TOTAL, message), _size(FREE, message)
    allocated, allowed = _size(ALLOCATED, message), _size(ALLOWED, message)
    unallocated = _size(UNALLOCATED, message)
    if unallocated is None and allocated is not None and (reserved := _size(RESERVED, message)) is not None:
        unallocated = max(reserved - allocated, 0)
    free_in_total = None if free is None else free + (unallocated or 0)
    device_in_use = None if total is None or free_in_total is None or free_in_total > total else total - free_in_total
    rows = named_buffers(
        _buffers(
            allocated or 0, _size(PRIVATE, message) or 0, _processes(message, allocated, unallocated, device_in_use)
        )
    )
    in_use = device_in_use if device_in_use is not None or allocated is None else rows.bytes
    gpu = GPU.search(message)
    # The device's free memory can be mapped as one block. PyTorch's own free memory is fragmented.
    largest_free = free if free and asked and free >= asked else None
    return Failure(
        head.start(),
        "torch",
        f"{head[1].lower()}:{gpu[1]}" if gpu else head[1],
        OutOfMemory(asked=asked, free=free_in_total, largest_free=largest_free, capacity=total, in_use=in_use),
        rows,
        used=in_use,
        cut=total is None,
        caveats=_caveats(unallocated, allowed),
    )


def _size(pattern: re.Pattern[str], message: str) -> int | None:
    """Return the size of the group that matched."""
    found = pattern.search(message)
    return size_of(found, found.lastindex or 0) if found else None


def _buffers(allocated: int, private: int, processes: list[Buffer]) -> list[Buffer]:
    """Build rows from sums, as PyTorch's message lists no tensors."""
    found = [Buffer(max(allocated - private, 0), name="allocated by PyTorch")] if allocated else []
    if private:
        found.append(Buffer(private, name="allocated by PyTorch in private pools (CUDA graphs)"))
    return found + processes


def _processes(message: str, allocated: int | None, unallocated: int | None, in_use: int | None) -> list[Buffer]:
    """Build rows of the device's other processes, and of this one's memory outside PyTorch where it is listed too.

    In a container PyTorch cannot identify itself among the device's processes and lists itself by a number. Its tensors
    are then counted twice, which shows when the sum exceeds the device's memory in use.
    """
    found = [(size_of(process, 2) or 0, process[1]) for process in PROCESS.finditer(message)]
    own = (allocated or 0) + (unallocated or 0)
    itself = -1
    if in_use is not None and sum(size for size, _ in found) + (allocated or 0) > in_use:
        itself = max((k for k, (size, _) in enumerate(found) if size >= own), key=lambda k: found[k], default=-1)
    return [
        Buffer(size - own, name=f"this process ({number}) beyond PyTorch")
        if k == itself
        else Buffer(size, name=f"process {number}")
        for k, (size, number) in enumerate(found)
    ]


def _caveats(unallocated: int | None, allowed: int | None) -> tuple[Caveat, ...]:
    entries = (
        (CaveatCode.RESERVED_UNALLOCATED, "Reserved by PyTorch but not used by tensors; counted as free", unallocated),
        (CaveatCode.LIMITED, "PyTorch's limit, set by set_per_process_memory_fraction", allowed),
    )
    return tuple(Caveat(code, text, size) for code, text, size in entries if size)


def _mps(match: re.Match[str]) -> Failure:
    allocated, others, allowed, asked = (size_of(match, group) or 0 for group in range(1, 5))
    rows = named_buffers(
        [Buffer(allocated, name="allocated by PyTorch"), Buffer(others, name="other Metal allocations")]
    )
    in_use = allocated + others
    out_of_memory = OutOfMemory(asked=asked, free=max(allowed - in_use, 0), capacity=allowed, in_use=in_use)
    return Failure(match.start(), "torch", "MPS", out_of_memory, rows, used=in_use)
