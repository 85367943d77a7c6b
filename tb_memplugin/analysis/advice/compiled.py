"""Advice that was compiled or traced: its saving replaces the estimate, and what saves nothing is left out."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tb_memplugin.analysis.advice.model import (
    NEARLY,
    ONE_MORE_PASS,
    Advice,
    AdviceKind,
    Saving,
    in_order,
    is_worthwhile,
)
from tb_memplugin.analysis.usage.live_bytes import peak, reserved_bytes
from tb_memplugin.model.fit import MICROBATCHES, Candidate, Outcome, dumped_files
from tb_memplugin.model.recording import Recording

Edits = frozenset[str]


def compiled_savings(
    recording: Recording, outcomes: Sequence[Outcome], again: Outcome | None = None
) -> dict[Edits, Saving]:
    """Return what compiles of the recording's step with further changes save, by the changes.

    `outcomes` are the candidates of the logdir. The recording is one of them if its file is in the
    run of one, and it reserves as much; or if one is its program, compiled again from its dump, and reserves nearly as
    much: on a GPU, a few kernels are others. Or `again` is known to be its program, and needs nearly as much.
    """
    repeated = again is not None and is_nearly(*needed_bytes(recording, again))
    own = again if repeated else next((one for one in outcomes if _is_of(recording, one)), None)
    if own is None:
        return {}
    of, before, found = own.candidate, own.reserved_bytes or 0, dict[Edits, Saving]()
    for other in outcomes:
        one, edits = other.candidate, frozenset(other.candidate.changes)
        is_same = (one.step, one.target, one.knobs) == (of.step, of.target, of.knobs)
        if is_same and edits > frozenset(of.changes) and other.compared_bytes is not None:
            saved = before - other.compared_bytes
            ratio = other.step_seconds / own.step_seconds if own.step_seconds and other.step_seconds else None
            found[edits - frozenset(of.changes)] = Saving(
                before, saved, saved, saved, "reserved", "traced" if other.is_traced else "compiled", ratio
            )
    return found


def _is_of(recording: Recording, outcome: Outcome) -> bool:
    now, again = reserved_bytes(recording), outcome.reserved_bytes
    if again is None or not recording.is_main_memory:
        return False
    if bool(outcome.run) and f"/{outcome.run}/" in f"/{recording.source}":
        return now == again
    return _is_dump_of(recording, outcome.candidate) and is_nearly(now, again)


def needed_bytes(recording: Recording, again: Outcome) -> tuple[int, int]:
    """Return what a recording needs, and what its program needs again: reserved, or live at once for a snapshot.

    What PyTorch's allocator reserves depends on what ran before the snapshot.
    """
    if recording.kind.has_tensor_stacks:
        return peak(recording).bytes, again.peak_bytes or 0
    return reserved_bytes(recording), again.reserved_bytes or 0


def is_nearly(now: int, again: int) -> bool:
    """Return whether a program that was compiled or traced again needs nearly as much."""
    return max(now, again) <= NEARLY * min(now, again)


def _is_dump_of(recording: Recording, candidate: Candidate) -> bool:
    """Return whether a candidate is the recording's program, by the names of its dump's folder and of its files."""
    named = re.split(r"[/\\]", dumped_files(candidate.step))[-2:]
    own = re.split(r"[/\\]", os.path.abspath(recording.source))[-2:]
    return not candidate.changes and len(named) == 2 and named[0] == own[0] and own[1].startswith(f"{named[1]}.")


def with_compiled(recording: Recording, pieces: Sequence[Advice], savings: Mapping[Edits, Saving]) -> list[Advice]:
    """Return advice with the savings that compiles have shown, without what they refute."""
    found = []
    for piece in pieces:
        if (saved := _compiled(piece, savings)) is not None:
            piece = piece.with_saving(replace(saved, replay=piece.saving.replay))
            if saved.time_ratio is not None:  # what a step then costs is known, and may be less than nothing
                piece = replace(piece, sentence=piece.sentence.replace(ONE_MORE_PASS, ""))
        found.append(piece)
    return in_order(one for one in found if not one.saving.is_shown or is_worthwhile(recording, one.saving_bytes))


def _compiled(piece: Advice, savings: Mapping[Edits, Saving]) -> Saving | None:
    if piece.edits:
        return savings.get(frozenset(piece.edits))
    if piece.kind is not AdviceKind.MICROBATCHING:
        return None
    return next((saved for edits, saved in savings.items() if len(edits) == 1 and _splits_batch(*edits)), None)


def _splits_batch(edit: str) -> bool:
    """Return whether a change sets a number of parts of the batch."""
    name = edit.removeprefix("set:").partition("=")[0]
    return edit.startswith("set:") and name.lower() in MICROBATCHES
