"""Advice for programs that the compiler has made smaller by itself, to fit into the memory."""

from __future__ import annotations

from dataclasses import replace

from tb_memplugin.analysis.advice.model import Advice, AdviceKind, is_worthwhile
from tb_memplugin.analysis.replay.compiler_recomputation import compiler_recomputation
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import counted


def allow_for_recomputation(recording: Recording, piece: Advice) -> Advice:
    """Return a piece that promises no more than holds if the compiler then repeats fewer operations.

    It repeats operations only until the program fits. A smaller program needs less of that, so that a change saves time
    instead of memory. In a program that still does not fit, it may choose others.
    """
    found, saved = compiler_recomputation(recording), piece.saving
    if piece.kind is AdviceKind.FRAGMENTATION or not is_worthwhile(recording, found.saved_bytes):
        return piece
    limit = recording.capacity
    excess = saved.bytes + saved.new_peak - limit if limit is not None and saved.new_peak <= limit else 0
    at_least = min(max(saved.at_least - found.saved_bytes, excess, 0), saved.at_least)
    note = (
        f" The compiler runs {counted(found.operations, 'operation')} twice to make the program fit; then it runs "
        "fewer of them twice, so the peak may fall by less."
    )
    return replace(piece, sentence=piece.sentence + note, saving=replace(saved, at_least=at_least))
