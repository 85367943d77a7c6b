"""Changes that lower the peak of a recording, the largest saving for the time that it costs first."""

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
from tb_memplugin.analysis.advice.model import Advice, AdviceKind, Cost, Effort, allow_for_recomputation, in_order
from tb_memplugin.analysis.advice.price import with_price
from tb_memplugin.analysis.memoize import memoize
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
    pieces = (piece for adviser in ADVISERS for piece in adviser(recording))
    return in_order(with_price(recording, allow_for_recomputation(recording, piece)) for piece in pieces)
