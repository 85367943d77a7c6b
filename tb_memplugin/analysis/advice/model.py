"""A piece of advice, its saving and its cost, and what the compiler has saved by itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum

import numpy as np

from tb_memplugin.analysis.replay.compiler_recomputation import compiler_recomputation
from tb_memplugin.analysis.replay.what_if import Change, peak_after
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.accelerators import TPUS
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.program import Backend
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import bytes_text, counted

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
    SCHEDULE = "schedule"
    OVERSIZED = "oversized"
    OUTPUTS = "outputs"
    UNUSED = "unused"


class Cost(IntEnum):
    """Cost of a kind of change, besides the work of making it; the cheapest first."""

    FREE = 0  # same results in the same time
    TIME = 1  # same results, with more computation or communication
    RESULTS = 2  # other roundings, or another model
    TRANSFERS = 3  # copies between host and device in every step


COSTS = {
    AdviceKind.DONATION: Cost.FREE,
    AdviceKind.UNUSED: Cost.FREE,
    AdviceKind.OUTPUTS: Cost.FREE,
    AdviceKind.LATE_FREE: Cost.FREE,
    AdviceKind.FRAGMENTATION: Cost.FREE,
    AdviceKind.SCHEDULE: Cost.TIME,
    AdviceKind.REPLICATION: Cost.TIME,
    AdviceKind.REMATERIALIZATION: Cost.TIME,
    AdviceKind.MICROBATCHING: Cost.TIME,
    AdviceKind.DTYPE: Cost.RESULTS,
    AdviceKind.PADDING: Cost.RESULTS,
    AdviceKind.OVERSIZED: Cost.TIME,
    AdviceKind.OFFLOAD: Cost.TRANSFERS,
}
LARGE_SHARE = 10  # a tenth of the peak: below it, only changes that are free are worth making first
MIN_FREE_SHARE = 50  # a fiftieth of the peak: below it, not even those


@dataclass(frozen=True, slots=True)
class Saving:
    """Bytes by which a change lowers the peak, and the peak after it.

    Where the compiler decides how much a change saves, `at_least` and `at_most` bound it; else they equal `bytes`.
    `reserved` are the bytes that an allocator reserves at the peak, for a change that lowers them and not the peak.
    """

    bytes: int
    new_peak: int
    at_least: int
    at_most: int
    reserved: int | None = None

    @property
    def before(self) -> int:
        """The bytes that the saving is a part of: the peak, or the reserved bytes."""
        return self.bytes + self.new_peak if self.reserved is None else self.reserved

    @property
    def effect(self) -> str:
        """The saving as the predicate of a sentence."""
        if self.at_least == self.at_most:
            return f"lowers the peak by {bytes_text(self.bytes)}"
        return f"lowers the peak by {bytes_text(self.at_least)} to {bytes_text(self.at_most)}"


@dataclass(frozen=True, slots=True, eq=False)
class Advice:
    """A change to the code, its reason and its saving.

    `rows` are the allocations concerned, largest first, and `bytes` is their sum. Fragmentation is not part of live
    bytes; its saving is the memory in gaps, a part of the reserved bytes, and the new peak is the old one. `edits`
    carry the advice out without a change of the user's code, as `tb-memplugin fit --try` does.
    """

    kind: AdviceKind
    title: str
    sentence: str
    change: str
    rows: I64
    bytes: int
    saving: Saving
    edits: tuple[str, ...] = ()

    @property
    def saving_bytes(self) -> int:
        return self.saving.bytes

    @property
    def new_peak_bytes(self) -> int:
        return self.saving.new_peak


def saving(recording: Recording, expected: Change, *bounds: Change) -> Saving | None:
    """Return what a change saves at the peak; None if the saving is too small to report.

    `bounds` are the same change under other decisions of the compiler: the saving is between the least and the most of
    all of them. If even one of them saves nothing, the change may cost memory, and there is no saving to report.
    """
    before = peak(recording).bytes
    after = [peak_after(recording, change).bytes for change in (expected, *bounds)]
    found = Saving(before - after[0], after[0], before - max(after), before - min(after))
    return found if is_worthwhile(recording, found.at_least) else None


def promise(recording: Recording, expected: int, *bounds: int) -> Saving | None:
    """Return a saving of so many bytes, between the bounds; None if it is too small to report."""
    found = (expected, *bounds)
    promised = Saving(expected, peak(recording).bytes - expected, min(found), max(found))
    return promised if is_worthwhile(recording, promised.at_least) else None


def cost_of(piece: Advice) -> Cost:
    """Return what a piece costs."""
    return COSTS.get(piece.kind, Cost.RESULTS)


def in_order(recording: Recording, pieces: Iterable[Advice]) -> list[Advice]:
    """Return pieces in the order in which to try them.

    Free changes come first, then changes that save at least a tenth of the peak, by their cost, then all others. Free
    changes that save little are among the others. Among equals, the largest saving comes first.
    """
    top = peak(recording).bytes

    def key(piece: Advice) -> tuple[int, int]:
        cost = cost_of(piece)
        share = MIN_FREE_SHARE if cost is Cost.FREE else LARGE_SHARE
        return cost if share * piece.saving_bytes >= top else len(Cost), -piece.saving_bytes

    return sorted(pieces, key=key)


def is_worthwhile(recording: Recording, size: int) -> bool:
    return size >= MIN_BYTES and size * MIN_SHARE >= peak(recording).bytes


def sort_by_size(recording: Recording, rows: I64) -> I64:
    """Sort rows by size, largest first."""
    return rows[np.argsort(-recording.allocations.size[rows], kind="stable")]


def row_name(recording: Recording, row: int) -> str:
    """Return a row's name for users: its scope (for an argument, its path), else its instruction."""
    rows = recording.allocations
    return rows.op_name[row] or rows.name[row] or "unnamed"


def copied_on_gpu(recording: Recording, weights: I64) -> int:
    """Return the bytes of the largest weight: a GPU program may copy it, where it is read after its update."""
    return int(recording.allocations.size[weights].max(initial=0)) if recording.backend is Backend.GPU else 0


def cpu_note(recording: Recording, effect: str) -> str:
    """Return a sentence on a change's effect on the CPU if the program was compiled for it, else nothing."""
    if recording.backend is not Backend.CPU:
        return ""
    return f" This program was compiled for the CPU, where {effect}."


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
    found, limits = peak(recording).bytes, {tpu.bytes for tpu in TPUS.values()}
    return min((limit for limit in limits if NEAR * limit <= found <= limit), default=0)
