"""The cost of a change in time, by the estimated times of the instructions that it repeats, adds or leaves out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tb_memplugin.analysis.advice.model import Advice, Cost, Longer
from tb_memplugin.analysis.program_times import estimated_time
from tb_memplugin.analysis.step_time import Bound, step_time
from tb_memplugin.model.recording import Recording

# With this, 22 of 25 changed programs for v5e, v6e and H100 take as much longer as the range says.
PRODUCTS_AGAIN = 0.5  # at least: the last product of a layer is not needed again, and some were repeated already


def longer(recording: Recording, piece: Advice) -> Longer | None:
    """Return by how much one run of a program takes longer with a change, simulated; None where that is unknown.

    At most, instructions that run again take as long as before. At least, only some of their products do: compilers
    fuse the rest into what uses it, and what is no longer kept need not be written and read.
    """
    if piece.cost is Cost.NONE:
        return Longer(0.0, 0.0)
    program, work, time = recording.program, piece.work, estimated_time(recording)
    if work is None or time is None or not time.total or program is None or not program.costs or not program.speed:
        return None
    costs, speed, seconds, total = program.costs(), program.speed, time.seconds, time.total
    products = costs.flops * costs.times / speed.flops
    fixed = work.host_bytes / speed.host_bytes - float(seconds[work.gone].sum())
    if work.exposed:
        none = np.full_like(costs.ends, -1)
        fixed += step_time(replace(costs, part_of=none, ends=none), speed).total - total
    links = seconds * (time.bound == Bound.LINKS)
    most = fixed + float(seconds[work.again].sum()) + work.nbytes / speed.memory_bytes + work.further * links.sum()
    least = fixed + PRODUCTS_AGAIN * float(products[work.again].sum()) - 2 * work.dropped / speed.memory_bytes
    return Longer(least / total, most / total)


def with_price(recording: Recording, piece: Advice) -> Advice:
    """Return a piece with what it costs in time."""
    return replace(piece, longer=longer(recording, piece))
