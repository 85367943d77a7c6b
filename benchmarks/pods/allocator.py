"""Events of a device's allocator while the training loop runs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from random import Random

from benchmarks.pods.tasks import (
    END,
    FIRST_STEP,
    MAX_ROWS,
    MIB,
    NEXT_BATCH,
    WIDTH,
    Call,
    Extra,
    Task,
    extra_tasks,
    tasks,
)

DELAY = 20_000_000  # from a call on the main thread to its first allocation
APART = 1_000_000  # between two events of a task
CAPACITY = 33_550_237_696  # in use, reserved and free of a real TPU v6e
BEFORE = 64 * MIB  # of the runtime, from before the recording
HEAP = 1 << 20  # the first address


@dataclass(frozen=True, slots=True)
class Event:
    """An allocation or a free, with the allocator's figures after it."""

    time: int
    task: int
    frees: bool
    size: int
    address: int
    shape: str
    in_use: int = 0
    peak: int = 0
    reserved: int = 0


@dataclass(frozen=True, slots=True)
class Loop:
    """One device's tasks and events. `peak_bytes` includes the stack that programs reserve."""

    tasks: list[Task]
    events: list[Event]
    first_extra: int  # the number of the first task of an extra
    peak_bytes: int


def run(rng: Random, stack: int, extras: tuple[Extra, ...] = (), *, ragged: bool = True) -> Loop:
    """Run the loop on one device. `stack`: bytes that the program reserves from its first step on."""
    late = rng.randrange(200 * APART)  # devices are not at once
    own = tasks(rng, ragged=ragged)
    every = own + [task for extra in extras for task in extra_tasks(extra)]
    events = sorted(_events(every, late), key=lambda event: event.time)
    in_use = list(accumulate((-e.size if e.frees else e.size for e in events), initial=BEFORE))[1:]
    peaks = list(accumulate(in_use, max))
    reported = [
        Event(e.time, e.task, e.frees, e.size, e.address, e.shape, now, peak, stack if e.time >= FIRST_STEP else 0)
        for e, now, peak in zip(events, in_use, peaks, strict=True)
    ]
    return Loop(every, reported, len(own), max(event.in_use + event.reserved for event in reported))


def _events(every: list[Task], late: int) -> list[Event]:
    """Return the events without the allocator's figures. Blocks that are free again are reused by the same call."""
    found: list[Event] = []
    free: dict[tuple[Call, int], list[tuple[int, int]]] = {}  # per call and array: (free from, address)
    end = HEAP + BEFORE
    for number, task in enumerate(every):
        for index, (size, shape) in enumerate(zip(task.sizes, task.shapes, strict=True)):
            start = task.start + late + DELAY + index * APART
            blocks = free.setdefault((task.call, index), [])
            reused = next((block for block in blocks if block[0] < start), None)
            if reused:
                blocks.remove(reused)
            address = reused[1] if reused else end
            if not reused:
                end += MAX_ROWS * WIDTH * 2 if task.call is NEXT_BATCH else size
            found.append(Event(start, number, False, size, address, shape))
            if task.end < END:
                freed = task.end + late + index * APART
                blocks.append((freed, address))
                found.append(Event(freed, number, True, size, address, ""))
    return found
