"""The estimated time of a compiled program, by a roofline of each instruction."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from tb_memplugin.model.accelerators import Speed
from tb_memplugin.model.arrays import F64, U8, Mask
from tb_memplugin.model.program import Backend, Costs


class Bound(IntEnum):
    """The resource that an instruction waits for."""

    MEMORY = 0  # of the device
    PRODUCTS = 1  # which take longer than their bytes
    LINKS = 2  # copies from or to other devices
    HOST = 3  # copies from or to the host

    @property
    def label(self) -> str:
        return ("memory", "matrix products", "other devices", "host")[self]


class StepTime(NamedTuple):
    """The estimated time of one run of a program, in seconds."""

    seconds: F64  # per position of the schedule, in all iterations of its loops; what is hidden behind others is 0
    bound: U8  # per position: Bound
    utilization: float  # MFU: the share of the chip's published rate that the products reach

    @property
    def total(self) -> float:
        return float(self.seconds.sum())

    def bound_by(self, bound: Bound) -> float:
        """Return the seconds that a resource binds."""
        return float(self.seconds[self.bound == bound].sum())

    @property
    def by_bound(self) -> dict[str, float]:
        """Return the seconds that each resource binds, by its name."""
        return {bound.label: seconds for bound in Bound if (seconds := self.bound_by(bound)) > 0}


def step_time(costs: Costs, speed: Speed) -> StepTime:
    """Estimate the time of each instruction.

    An instruction takes as long as its products or its bytes, whichever takes longer. An asynchronous operation is
    hidden behind the instructions between its start and its end, as far as they take. Kernels that a GPU runs beside
    others are not: they share its memory's bandwidth.
    """
    busy = np.maximum(costs.nbytes / speed.memory_bytes, costs.flops / speed.flops)
    busy = np.where(busy > 0, busy + speed.launch_seconds, 0.0)
    links, host = costs.link_bytes / speed.link_bytes, costs.host_bytes / speed.host_bytes
    own = (busy + links + host) * costs.times
    is_beside = (costs.part_of >= 0) & ((costs.backend is not Backend.GPU) | (links + host > 0))
    in_line = np.where(is_beside, 0.0, own)
    seconds = in_line + _waits(costs, in_line, np.where(is_beside, own, 0.0))
    bound = np.where(costs.flops / speed.flops > costs.nbytes / speed.memory_bytes, Bound.PRODUCTS, Bound.MEMORY)
    bound[_concerned(costs, links)] = Bound.LINKS
    bound[_concerned(costs, host)] = Bound.HOST
    total = float(seconds.sum())
    return StepTime(
        seconds=seconds,
        bound=bound.astype(np.uint8),
        utilization=float((costs.flops * costs.times).sum()) / max(total * speed.peak_flops, 1.0),
    )


def _concerned(costs: Costs, moved: F64) -> Mask:
    """Return a mask of the instructions that move something themselves, or wait for what does."""
    is_part = costs.part_of >= 0
    started = np.bincount(costs.part_of[is_part], moved[is_part], len(moved)) > 0
    return (moved > 0) | ((costs.ends >= 0) & started[costs.ends])


def _waits(costs: Costs, in_line: F64, beside: F64) -> F64:
    """Return how long the end of each asynchronous operation waits for the rest of it."""
    is_part = costs.part_of >= 0
    duration = np.bincount(costs.part_of[is_part], beside[is_part], len(in_line))
    done = np.r_[0.0, np.cumsum(in_line)]
    ends = np.flatnonzero(costs.ends >= 0)
    start = costs.ends[ends]
    waits = np.zeros(len(in_line))
    waits[ends] = np.maximum(duration[start] - (done[ends] - done[start]), 0.0)
    return waits
