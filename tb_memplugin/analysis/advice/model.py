"""A piece of advice, its saving, and the smallest saving worth reporting."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from tb_memplugin.analysis.replay.what_if import Change, peak_after
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import bytes_text

# A saving below 1/200 of the peak, or below 1 MiB, does not decide whether a program fits.
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


@dataclass(frozen=True, slots=True)
class Saving:
    """Bytes by which a change lowers the peak, and the peak after it."""

    bytes: int
    new_peak: int

    @property
    def effect(self) -> str:
        """The saving as the predicate of a sentence."""
        return f"lowers the peak by {bytes_text(self.bytes)}"


@dataclass(frozen=True, slots=True, eq=False)
class Advice:
    """A change to the code, its reason and its saving.

    `rows` are the allocations concerned, largest first, and `bytes` is their sum. Fragmentation is not part of live
    bytes; its saving is the memory in gaps, and the new peak is the old one.
    """

    kind: AdviceKind
    title: str
    sentence: str
    change: str
    rows: I64
    bytes: int
    saving: Saving

    @property
    def saving_bytes(self) -> int:
        return self.saving.bytes

    @property
    def new_peak_bytes(self) -> int:
        return self.saving.new_peak


def saving(recording: Recording, change: Change) -> Saving | None:
    """Return what a change saves at the peak; None if the saving is too small to report."""
    before, after = peak(recording).bytes, peak_after(recording, change).bytes
    return Saving(before - after, after) if is_worthwhile(recording, before - after) else None


def is_worthwhile(recording: Recording, size: int) -> bool:
    return size >= MIN_BYTES and size * MIN_SHARE >= peak(recording).bytes


def sort_by_size(recording: Recording, rows: I64) -> I64:
    """Sort rows by size, largest first."""
    ordered: I64 = rows[np.argsort(-recording.allocations.size[rows], kind="stable")]
    return ordered


def row_name(recording: Recording, row: int) -> str:
    """Return a row's name for users: its scope (for an argument, its path), else its instruction."""
    rows = recording.allocations
    return rows.scope[row] or rows.name[row] or "unnamed"


def cpu_note(recording: Recording, effect: str) -> str:
    """Return a sentence on a change's effect on the CPU if the program was compiled for it, else nothing."""
    if recording.program is None or not recording.program.for_cpu:
        return ""
    return f" This program was compiled for the CPU, where {effect}."
