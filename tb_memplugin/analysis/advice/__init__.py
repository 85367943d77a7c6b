"""Changes that lower a recording's peak. Each kind of advice has its own file."""

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
    schedule,
    unused,
)
from tb_memplugin.analysis.advice.model import Advice, AdviceKind, in_order
from tb_memplugin.analysis.advice.support.compiler_limit import allow_for_recomputation
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
    schedule.advise,
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
    """Return all advice, what to try first first. Each change is simulated on its own: savings are not additive.

    Out-of-memory messages get no advice: they contain no schedule to simulate.
    """
    if recording.out_of_memory is not None and recording.axis is Axis.INSTANT:
        return []
    pieces = (piece for adviser in ADVISERS for piece in adviser(recording))
    return in_order(recording, (allow_for_recomputation(recording, piece) for piece in pieces))
