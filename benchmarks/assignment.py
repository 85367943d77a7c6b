"""Buffer assignment as by a compiler: lifetimes from the schedule, offsets from a heap, and the heap's trace."""

from bisect import bisect_left, insort
from dataclasses import dataclass, field
from enum import IntEnum

from benchmarks.program import Instruction
from benchmarks.shapes import POINTER_SIZE

ALIGNMENT = 512  # bytes, of buffers in TPU programs


class EventKind(IntEnum):
    """The kinds of heap-simulator events, with the numbers of HeapSimulatorTrace.Event.Kind."""

    ALLOC = 0
    FREE = 1
    SHARE_WITH = 2


@dataclass
class Assignment:
    """The memory of each result. All lists but `events` are indexed by position in the schedule."""

    size: list[int]  # bytes, with padding
    owner: list[int]  # the position of the logical buffer of the result: its own, or the source of a bitcast
    canonical: list[int]  # of a temporary: the position whose memory it reuses, or its own
    last_use: list[int]  # of the logical buffer
    offset: dict[int, int] = field(default_factory=dict)  # of a temporary, in the heap
    events: list[tuple[EventKind, int]] = field(default_factory=list)  # with the position of the buffer
    heap_size: int = 0
    live_peak: int = 0  # bytes of temporaries, without free blocks
    peak_position: int = -1  # the first position with the peak
    peak_event: int = -1


def is_temporary(instruction: Instruction) -> bool:
    return instruction.opcode not in ("parameter", "constant", "bitcast") and not instruction.returned


def assign(schedule: list[Instruction]) -> Assignment:
    """Assign memory to every result of a schedule."""
    plan = _lifetimes(schedule)
    heap, live = BestFitHeap(), 0
    users: dict[int, int] = {}  # canonical position -> number of live buffers in its memory
    freed_at: list[list[int]] = [[] for _ in schedule]
    for position, instruction in enumerate(schedule):
        if is_temporary(instruction):
            root = plan.canonical[position]
            freed_at[plan.last_use[position]].append(position)
            if root == position:
                plan.events.append((EventKind.ALLOC, position))
                plan.offset[position] = heap.allocate(plan.size[position])
                live += plan.size[position]
            else:
                plan.events.append((EventKind.SHARE_WITH, position))
                plan.offset[position] = plan.offset[root]
            users[root] = users.get(root, 0) + 1
            if live > plan.live_peak:
                plan.live_peak, plan.peak_position, plan.peak_event = live, position, len(plan.events) - 1
        for freed in freed_at[position]:
            plan.events.append((EventKind.FREE, freed))
            root = plan.canonical[freed]
            users[root] -= 1
            if not users[root]:
                heap.free(plan.offset[root], plan.size[root])
                live -= plan.size[root]
    plan.heap_size = heap.size
    return plan


def _lifetimes(schedule: list[Instruction]) -> Assignment:
    size: list[int] = []
    owner: list[int] = []
    canonical: list[int] = []
    last_use = list(range(len(schedule)))
    for position, instruction in enumerate(schedule):
        shape = instruction.shape
        size.append(shape.size if shape else POINTER_SIZE * len(instruction.operands))
        owner.append(owner[instruction.operands[0]] if instruction.opcode == "bitcast" else position)
        for operand in instruction.operands:
            last_use[owner[operand]] = position
        canonical.append(canonical[owner[instruction.operands[0]]] if instruction.in_place else position)
    return Assignment(size, owner, canonical, last_use)


class BestFitHeap:
    """A best-fit heap, as compilers use to place temporary buffers.

    It grows as needed and never overlaps live buffers. `size` is its largest extent, with free blocks.
    """

    def __init__(self) -> None:
        self.size = 0
        self._free: list[tuple[int, int]] = []  # (size, offset), smallest first
        self._by_start: dict[int, int] = {}  # offset of a free block -> its size
        self._by_end: dict[int, int] = {}  # end of a free block -> its size

    def allocate(self, size: int) -> int:
        """Return an offset for `size` bytes: in the smallest free block that fits, else at the end of the heap."""
        size = align(size)
        index = bisect_left(self._free, (size, 0))
        if index == len(self._free):
            return self._grow(size)
        block, offset = self._free[index]
        self._remove(offset, block)
        if block > size:
            self._insert(offset + size, block - size)
        return offset

    def free(self, offset: int, size: int) -> None:
        """Free the bytes, and merge them with the adjacent free blocks."""
        size = align(size)
        if before := self._by_end.get(offset, 0):
            self._remove(offset - before, before)
        if after := self._by_start.get(offset + size, 0):
            self._remove(offset + size, after)
        self._insert(offset - before, before + size + after)

    def _grow(self, size: int) -> int:
        """Extend the last free block to `size` bytes, and return its offset."""
        last = self._by_end.get(self.size, 0)
        offset = self.size - last
        if last:
            self._remove(offset, last)
        self.size = offset + size
        return offset

    def _insert(self, offset: int, size: int) -> None:
        insort(self._free, (size, offset))
        self._by_start[offset] = self._by_end[offset + size] = size

    def _remove(self, offset: int, size: int) -> None:
        del self._free[bisect_left(self._free, (size, offset))]
        del self._by_start[offset], self._by_end[offset + size]


def align(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
