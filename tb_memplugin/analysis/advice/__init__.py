"""Changes that lower the peak of a recording, the largest saving for the time that it costs first."""

from dataclasses import replace

import numpy as np

from tb_memplugin.analysis.advice import torch
from tb_memplugin.analysis.advice.allocator import advise_earlier_steps, advise_fragmentation
from tb_memplugin.analysis.advice.jax import (
    donation,
    dtype,
    microbatching,
    rematerialization,
    replication,
    schedule,
    whole_batch,
)
from tb_memplugin.analysis.advice.jax.idle_arguments import advise_late_free, advise_offload
from tb_memplugin.analysis.advice.jax.shapes import advise_gathered, advise_oversized, advise_padding
from tb_memplugin.analysis.advice.jax.unneeded import advise_outputs, advise_unused
from tb_memplugin.analysis.advice.model import (
    Advice,
    AdviceKind,
    Cost,
    Effort,
    Longer,
    allow_for_recomputation,
    in_order,
)
from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.analysis.program_times import estimated_time
from tb_memplugin.analysis.step_time import Bound, step_time
from tb_memplugin.model.caveats import CaveatCode
from tb_memplugin.model.kinds import Axis
from tb_memplugin.model.recording import Recording

__all__ = ["Advice", "AdviceKind", "Cost", "Effort", "advise"]

ADVISERS = (
    donation.advise,
    rematerialization.advise,
    microbatching.advise,
    dtype.advise,
    advise_padding,
    advise_gathered,
    replication.advise,
    whole_batch.advise,
    advise_fragmentation,
    advise_late_free,
    advise_offload,
    schedule.advise,
    advise_earlier_steps,
    torch.advise_gradients,
    torch.advise_microbatches,
    torch.advise_checkpoint,
    advise_oversized,
    advise_outputs,
    advise_unused,
)


@memoize
def advise(recording: Recording) -> list[Advice]:
    """Return all advice, the largest saving for the time that it costs first.

    Each change is simulated on its own: savings are not additive.
    Out-of-memory messages get no advice, as they contain no schedule to simulate, nor do programs of which only the
    allocations are known.
    """
    if recording.out_of_memory is not None and recording.axis is Axis.INSTANT:
        return []
    if any(caveat.code is CaveatCode.NO_MODULE_TEXT for caveat in recording.caveats):
        return []
    pieces = (allow_for_recomputation(recording, piece) for adviser in ADVISERS for piece in adviser(recording))
    return in_order(replace(piece, longer=_longer(recording, piece)) for piece in pieces)


# With this, 22 of 25 changed programs for v5e, v6e and H100 take as much longer as the range says.
PRODUCTS_AGAIN = 0.5  # at least: the last product of a layer is not needed again, and some were repeated already


def _longer(recording: Recording, piece: Advice) -> Longer | None:
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
