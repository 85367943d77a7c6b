"""What would help, in order of what it saves at the peak: one file for each kind of advice."""

from __future__ import annotations

from tb_memplugin.analysis.advice.common import earlier_steps, fragmentation, oversized
from tb_memplugin.analysis.advice.jax import (
    donation,
    dtype,
    late_free,
    microbatching,
    offload,
    outputs,
    padding,
    rematerialization,
    replication,
    unused,
)
from tb_memplugin.analysis.advice.model import Advice, AdviceKind
from tb_memplugin.analysis.advice.torch import accumulation, checkpoint, gradients
from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.model.kinds import Axis
from tb_memplugin.model.recording import Recording

__all__ = ["Advice", "AdviceKind", "advise"]

ADVISERS = (
    donation.advise,
    rematerialization.advise,
    microbatching.advise,
    dtype.advise,
    padding.advise,
    replication.advise,
    fragmentation.advise,
    late_free.advise,
    offload.advise,
    earlier_steps.advise,
    gradients.advise,
    accumulation.advise,
    checkpoint.advise,
    oversized.advise,
    outputs.advise,
    unused.advise,
)


@memoize
def advise(recording: Recording) -> list[Advice]:
    """Each piece on its own: two that concern the same bytes do not save them twice.

    None for an error, whose text has no schedule that could be replayed.
    """
    if recording.out_of_memory is not None and recording.axis is Axis.INSTANT:
        return []
    found = [piece for ask in ADVISERS for piece in ask(recording)]
    return sorted(found, key=lambda piece: -piece.saving_bytes)
