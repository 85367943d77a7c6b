"""Memory as a compiler assigns it to a program: lifetimes from the schedule, places from a heap, a trace."""

from dataclasses import dataclass, field
from enum import IntEnum

from benchmarks.heap import BestFitHeap
from benchmarks.program import Instruction
from benchmarks.shapes import POINTER_SIZE


class Kind(IntEnum):
    """Of a heap-simulator event, numbered as in HeapSimulatorTrace.Event.Kind."""

    ALLOC = 0
    FREE = 1
    SHARE_WITH = 2


@dataclass
class Assignment:
    """Where each result lies. All lists but `events` are indexed by position in the schedule."""

    size: list[int]  # bytes, with padding
    owner: list[int]  # the position whose logical buffer holds the result: its own, or the source of a bitcast
    canonical: list[int]  # of a temporary: the position whose bytes it lives in, itself where it shares none
    last_use: list[int]  # of the logical buffer
    offset: dict[int, int] = field(default_factory=dict)  # of a temporary, in the heap
    events: list[tuple[Kind, int]] = field(default_factory=list)  # what happens to the buffer of which position
    heap_size: int = 0
    live_peak: int = 0  # bytes of temporaries, without holes
    peak_position: int = -1  # first to reach it
    peak_event: int = -1


def is_temporary(instruction: Instruction) -> bool:
    return instruction.opcode not in ("parameter", "constant", "bitcast") and not instruction.returned


def assign(schedule: list[Instruction]) -> Assignment:
    plan = _lifetimes(schedule)
    heap, live = BestFitHeap(), 0
    holders: dict[int, int] = {}  # canonical -> how many live buffers share its bytes
    dying: list[list[int]] = [[] for _ in schedule]
    for position, instruction in enumerate(schedule):
        if is_temporary(instruction):
            root = plan.canonical[position]
            dying[plan.last_use[position]].append(position)
            if root == position:
                plan.events.append((Kind.ALLOC, position))
                plan.offset[position] = heap.allocate(plan.size[position])
                live += plan.size[position]
            else:
                plan.events.append((Kind.SHARE_WITH, position))
                plan.offset[position] = plan.offset[root]
            holders[root] = holders.get(root, 0) + 1
            if live > plan.live_peak:
                plan.live_peak, plan.peak_position, plan.peak_event = live, position, len(plan.events) - 1
        for dead in dying[position]:
            plan.events.append((Kind.FREE, dead))
            root = plan.canonical[dead]
            holders[root] -= 1
            if not holders[root]:
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
