"""The ledger of an inference engine's device that ran out of memory: its start-up lines, and its compiled programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypedDict

import numpy as np

from tb_memplugin.analysis.usage.live_set import share
from tb_memplugin.model.kinds import RegionKind
from tb_memplugin.model.recording import Recording

# Start-up lines with one of these state what programs take. Others, as of tpu-inference, leave it out.
STATED = {"activations at the profiled peak", "CUDA graphs"}
REST = ("unknown", "left free by the utilization", "free")  # what programs take is part of these


class HolderJson(TypedDict):
    """A holder of memory at one moment."""

    holder: str
    """`Live` and `Cache` are the framework's; `Private`, `Shared`, `Child processes` and `/dev/shm` are the host's; the
    others are processes by name, and the rest. From an engine's start-up lines: `weights`, `KV cache` and more, and
    the temporary memory of its largest program, where the run has them."""
    bytes: int
    """The bytes that it holds."""
    share: float
    """The share of all."""


def holders(held: Iterable[tuple[str, int]]) -> list[HolderJson]:
    """Return (name, bytes) of holders with their shares."""
    found = list(held)
    total = sum(size for _, size in found)
    return [{"holder": name, "bytes": size, "share": share(size, total)} for name, size in found]


def ledger_of(error: Recording, others: Sequence[Recording]) -> list[HolderJson]:
    """Return the holders that the text of an error states, with the programs of its run where it leaves them out.

    One program runs at a time, so that the largest counts.
    """
    failure = error.out_of_memory
    held = {one.holder: one.bytes for one in failure.ledger} if failure is not None else {}
    programs = [other for other in others if other.program and other.is_main_memory and other.run == error.run]
    if not held or STATED & held.keys() or not programs:
        return holders(held.items())
    largest = max(programs, key=_beside_arguments)
    size, of = _beside_arguments(largest), f", the largest of {len(programs):,} programs" if len(programs) > 1 else ""
    rest, taken = {}, size
    for name in REST:
        if name in held:
            left = held.pop(name)
            rest[name], taken = max(left - taken, 0), max(taken - left, 0)
    held[f"temporary memory of {largest.title}{of}"] = size
    return holders((*held.items(), *((name, left) for name, left in rest.items() if left)))


def _beside_arguments(program: Recording) -> int:
    """Return the bytes that a program reserves beside its arguments, which weights and cache are."""
    regions = program.outline.regions
    return int(regions.size[(regions.kind & np.uint8(RegionKind.PARAMETER)) == 0].sum())
