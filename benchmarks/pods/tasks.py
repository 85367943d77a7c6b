"""The arrays that a training loop allocates on a device, with their times.

Parameters and Adam's moments stay, gradients live for a part of each step, and the next batch is fetched while a step
runs. Batches have as many rows as the data have, so devices differ by some MiB.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import NamedTuple

MIB, GIB = 2**20, 2**30
PS = 10**12  # picoseconds in a second
STEPS = 12
FIRST_STEP, STEP = 9 * PS // 2, 3 * PS // 10  # the start of the first step, and the time between two
END = FIRST_STEP + STEPS * STEP

LAYERS, WIDTH = 18, 4096
WEIGHTS = ((WIDTH, 3 * WIDTH), (WIDTH, WIDTH), (WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH))
ROWS, ROWS_SPREAD, MAX_ROWS, ROWS_STEP = 90_000, 1_900, 94_016, 64  # of a batch; a row has 8 KiB
METRICS = 8  # scalars that a step returns
WEIGHT_SHAPES = tuple(f"bf16[{LAYERS},{rows},{columns}]{{2,1,0:T(8,128)(2,1)}}" for rows, columns in WEIGHTS)
BATCH_SHAPE = f"bf16[{{}},{WIDTH}]{{{{1,0:T(8,128)(2,1)}}}}"
SCALAR_SHAPE = "f32[]{:T(128)}"


class Call(NamedTuple):
    """A line of the training script that allocates."""

    file: str
    line: int
    function: str
    jitted: str = ""  # empty: the call copies arrays to the device

    @property
    def source_line(self) -> str:
        return f"{self.file}:{self.line}"


INIT_PARAMS = Call("state.py", 27, "init_params", "init_params")
INIT_MOMENTS = Call("optimizer.py", 19, "init_moments", "init_moments")
NEXT_BATCH = Call("data.py", 57, "next_batch")
TRAIN_STEP = Call("train.py", 64, "step", "train_step")
CALLS = (INIT_PARAMS, INIT_MOMENTS, NEXT_BATCH, TRAIN_STEP)


class Lifetime(StrEnum):
    """The lifetime of an extra allocation."""

    SPAN = "span"  # allocated once, freed some steps later
    STEP = "step"  # allocated and freed in each step
    KEPT = "kept"  # allocated in each step, never freed


@dataclass(frozen=True, slots=True)
class Extra:
    """Allocations that the loop does not have on other devices, made by a thread of their own."""

    call: Call
    bytes: int
    lifetime: Lifetime


@dataclass(frozen=True, slots=True)
class Task:
    """Arrays that one call allocates together; times in picoseconds."""

    call: Call
    start: int
    end: int  # the first free; END and later: none
    sizes: tuple[int, ...] = ()
    shapes: tuple[str, ...] = ()


def step_start(step: int) -> int:
    return FIRST_STEP + step * STEP


def tasks(rng: Random, *, ragged: bool = True) -> list[Task]:
    """Return the tasks of the loop itself. All devices have the same tasks, with batches of different sizes.

    `ragged`: so have the steps of a device.
    """
    weights = [LAYERS * rows * columns * 2 for rows, columns in WEIGHTS]
    scalars, scalar_shapes = (512,) * METRICS, (SCALAR_SHAPE,) * METRICS
    found = [
        Task(INIT_PARAMS, PS // 5, END, tuple(weights), WEIGHT_SHAPES),
        Task(INIT_MOMENTS, PS, END, tuple(weights * 2), WEIGHT_SHAPES * 2),
    ]
    drawn = [min(int(rng.gauss(ROWS, ROWS_SPREAD)), MAX_ROWS) // ROWS_STEP * ROWS_STEP for _ in range(STEPS)]
    for step in range(STEPS):
        rows = drawn[step if ragged else 0]
        start, after = step_start(step), step_start(step + 1)
        found.append(
            Task(
                NEXT_BATCH,
                start - STEP * 19 // 20,
                after - STEP // 25,
                (rows * WIDTH * 2,),
                (BATCH_SHAPE.format(rows),),
            )
        )
        found.append(
            Task(
                TRAIN_STEP,
                start + STEP * 3 // 10,
                after - STEP // 20,
                (*weights, *scalars),
                (*WEIGHT_SHAPES, *scalar_shapes),
            )
        )
    return found


def extra_tasks(extra: Extra) -> list[Task]:
    size = -(-extra.bytes // 512) * 512
    if extra.lifetime is Lifetime.SPAN:
        return [Task(extra.call, step_start(2) + STEP // 5, step_start(9), (size,), ("",))]
    ends = [step_start(step) + STEP * 4 // 5 if extra.lifetime is Lifetime.STEP else END for step in range(STEPS)]
    return [Task(extra.call, step_start(step) + STEP * 2 // 5, end, (size,), ("",)) for step, end in enumerate(ends)]
