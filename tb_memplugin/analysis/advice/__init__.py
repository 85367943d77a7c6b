"""What would help, in order of what it saves at the peak: one file for each kind of advice."""

from __future__ import annotations

from tb_memplugin.analysis.advice import (
    accumulation,
    donation,
    dtype,
    earlier_steps,
    fragmentation,
    gradients,
    late_free,
    microbatching,
    offload,
    outputs,
    oversized,
    padding,
    rematerialization,
    replication,
    tensor_checkpoint,
    unused,
)
from tb_memplugin.analysis.advice.piece import Advice, Kind
from tb_memplugin.analysis.once import once
from tb_memplugin.recording import Axis, Recording

__all__ = ["Advice", "Kind", "advise"]

ASKED = (
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
    tensor_checkpoint.advise,
    oversized.advise,
    outputs.advise,
    unused.advise,
)


@once
def advise(recording: Recording) -> list[Advice]:
    """Each piece on its own: two that concern the same bytes do not save them twice.

    None for an error, whose text has no schedule that could be replayed.
    """
    if recording.refusal is not None and recording.axis is Axis.INSTANT:
        return []
    found = [piece for ask in ASKED for piece in ask(recording)]
    return sorted(found, key=lambda piece: -piece.saving_bytes)
