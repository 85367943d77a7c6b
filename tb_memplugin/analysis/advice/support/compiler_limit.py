"""Advice for programs that the compiler has made smaller by itself, to fit into the memory."""

from __future__ import annotations

from dataclasses import replace

from tb_memplugin.analysis.advice.model import Advice, AdviceKind, is_worthwhile
from tb_memplugin.analysis.replay.compiler_recomputation import compiler_recomputation
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.chips import BY_NAME
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import counted

NEAR = 0.85  # of the limit: XLA stops to compute again where the program fits
# Fragmentation is not part of the peak, and the replay of microbatches keeps what the compiler need not repeat.
EXACT = (AdviceKind.FRAGMENTATION, AdviceKind.MICROBATCHING)


def allow_for_recomputation(recording: Recording, piece: Advice) -> Advice:
    """Return a piece that promises no more than holds if the compiler then repeats fewer operations.

    It repeats operations only until the program fits. A smaller program needs less of that, so that a change saves time
    instead of memory. In a program that still does not fit, it may choose others.
    """
    found, saved, limit = compiler_recomputation(recording), piece.saving, memory_limit(recording)
    if piece.kind in EXACT or not is_worthwhile(recording, found.saved_bytes):
        return piece
    excess = saved.bytes + saved.new_peak - limit if saved.new_peak <= limit else 0
    at_least = min(max(saved.at_least - found.saved_bytes, excess, 0), saved.at_least)
    note = (
        f" The compiler runs {counted(found.operations, 'operation')} twice to make the program fit; then it runs "
        "fewer of them twice, so the peak may fall by less."
    )
    return replace(piece, sentence=piece.sentence + note, saving=replace(saved, at_least=at_least))


def memory_limit(recording: Recording) -> int:
    """Return the memory that a program with repeated operations was compiled for, in bytes.

    Without a name of the chip, the peak decides: it is a little below the limit if the program fits. Else 0 is
    returned, as XLA has repeated all that it can.
    """
    if recording.capacity:
        return recording.capacity
    found, limits = peak(recording).bytes, {chip.hbm for chip in BY_NAME.values()}
    return min((limit for limit in limits if NEAR * limit <= found <= limit), default=0)
