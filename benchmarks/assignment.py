"""Buffer assignment as by a compiler: lifetimes from the schedule, offsets from a heap, and the heap's trace."""

from dataclasses import dataclass, field
from enum import IntEnum

from benchmarks.heap import BestFitHeap
from benchmarks.program import Instruction
from benchmarks.shapes import POINTER_SIZE


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
