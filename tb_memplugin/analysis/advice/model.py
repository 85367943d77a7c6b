"""One piece of advice, and when it is worth giving."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from tb_memplugin.analysis.replay.what_if import Change, peak_after
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.recording import Recording

# Less than a two-hundredth of the peak, or than a MiB, is not what keeps a program from fitting.
MIN_SHARE = 200
MIN_BYTES = 2**20


class AdviceKind(StrEnum):
    DONATION = "donation"
    REMATERIALIZATION = "rematerialization"
    MICROBATCHING = "microbatching"
    DTYPE = "dtype"
    PADDING = "padding"
    REPLICATION = "replication"
    FRAGMENTATION = "fragmentation"
    LATE_FREE = "late free"
    OFFLOAD = "offload"
    OVERSIZED = "oversized"
    OUTPUTS = "outputs"
    UNUSED = "unused"


@dataclass(frozen=True, slots=True, eq=False)
class Advice:
    """What to change in the code, why, and what the peak is then.

    `rows` are the evidence, largest first, and `bytes` their sum. The saving is at the peak of the recording; of
    fragmentation, which no peak of live bytes shows, it is of what is held for nothing.
    """

    kind: AdviceKind
    title: str
    sentence: str
    change: str
    rows: I64
    bytes: int
    saving_bytes: int
    new_peak_bytes: int


@dataclass(frozen=True, slots=True)
class Saving:
    bytes: int
    new_peak: int


def saving(recording: Recording, change: Change) -> Saving | None:
    """What a change saves at the peak; None where that is nothing, or not worth a change."""
    before, after = peak(recording).bytes, peak_after(recording, change).bytes
    return Saving(before - after, after) if is_worthwhile(recording, before - after) else None


def is_worthwhile(recording: Recording, size: int) -> bool:
    return size >= MIN_BYTES and size * MIN_SHARE >= peak(recording).bytes


def sort_by_size(recording: Recording, rows: I64) -> I64:
    """Largest first."""
    ordered: I64 = rows[np.argsort(-recording.allocations.size[rows], kind="stable")]
    return ordered


def row_name(recording: Recording, row: int) -> str:
    """What people call a row: an argument's path, else the scope and the instruction that made it."""
    rows = recording.allocations
    return rows.scope[row] or rows.name[row] or "unnamed"


def cpu_note(recording: Recording, what: str) -> str:
    """What to add where a saving is an accelerator's: what becomes of it on the CPU, if that is where this runs."""
    if recording.program is None or not recording.program.for_cpu:
        return ""
    return f" On the CPU, for which this program was compiled, {what}."
