"""Sixty different programs whose modules have three names, in the ways that such files lie in a logdir."""

from __future__ import annotations

from pathlib import Path

from support.hand_built import ALLOC, FREE, MIB, Handmade

MODULES = ("jit_train_step", "jit_eval_step", "jit_init")
COUNT = 60


def size_of(number: int) -> int:
    """Return the peak of a program in bytes, which no other one has."""
    return (100 + 7 * number % 61) * MIB + 4096 * number


def program(number: int) -> bytes:
    made = Handmade()
    made.proto.hlo_module.name = MODULES[number % len(MODULES)].encode()
    made.proto.hlo_module.id = 1 + number % 2
    first = made.instruction("first")
    made.instruction("last", [first])
    buffer = made.buffer(first, size_of(number))
    made.allocation((buffer, 0), size=buffer.size).is_thread_local = False
    made.trace((ALLOC, buffer.id), (FREE, buffer.id)).buffer_allocation_index = 0
    return made.data


def write_programs(logdir: Path) -> None:
    """Write the programs flat in one folder, as an XLA dump, and as several runs."""
    for number in range(COUNT):
        module, data = MODULES[number % len(MODULES)], program(number)
        names = (
            f"flat/step_{number:04d}.hlo.pb",
            f"dump/module_{number:04d}.{module}.cl_1014260217.after_optimizations.hlo.pb",
            f"runs/run_{number}/{module}.hlo_proto.pb",
        )
        for path in map(logdir.joinpath, names):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
