"""A piece of advice, its saving and its cost, and what the compiler has saved by itself."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal, NamedTuple, Self

import numpy as np

from tb_memplugin.analysis.replay.compiler_recomputation import compiler_recomputation
from tb_memplugin.analysis.replay.what_if import Change, always, combine, peak_after
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.accelerators import TPUS
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.kinds import RegionKind
from tb_memplugin.model.program import Backend
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import bytes_text, counted

Evidence = Literal["simulated", "compiled", "traced"]
ONE_MORE_PASS = " The cost is one more forward pass."
# A saving below 1/200 of the peak, or below 1 MiB, does not decide whether a program fits.
MIN_SHARE = 200
MIN_BYTES = 2**20


class Cost(StrEnum):
    """Cost of a kind of change, besides the work of making it; the cheapest first."""

    NONE = "none"  # same results in the same time
    TIME = "time"  # same results, with more computation or communication
    RESULTS = "rounding or results"  # other roundings, or another model
    TRANSFERS = "transfers"  # copies between host and device in every step


class Effort(StrEnum):
    """Work of making a kind of change; the least first."""

    NONE = "none"  # an environment variable
    ARGUMENT = "one argument"
    LINES = "a few lines"
    RESTRUCTURE = "restructure"  # other functions, or another model


class AdviceKind(StrEnum):
    """A kind of change, its cost, and the work of making it."""

    cost: Cost
    effort: Effort

    def __new__(cls, value: str, cost: Cost, effort: Effort) -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.cost, member.effort = cost, effort
        return member

    DONATION = "donation", Cost.NONE, Effort.ARGUMENT
    REMATERIALIZATION = "rematerialization", Cost.TIME, Effort.LINES
    MICROBATCHING = "microbatching", Cost.TIME, Effort.LINES
    DTYPE = "dtype", Cost.RESULTS, Effort.LINES
    PADDING = "padding", Cost.RESULTS, Effort.RESTRUCTURE
    GATHER = "gather", Cost.NONE, Effort.LINES
    REPLICATION = "replication", Cost.TIME, Effort.LINES
    FRAGMENTATION = "fragmentation", Cost.NONE, Effort.NONE
    LATE_FREE = "late free", Cost.NONE, Effort.LINES
    OFFLOAD = "offload", Cost.TRANSFERS, Effort.RESTRUCTURE
    SCHEDULE = "schedule", Cost.TIME, Effort.ARGUMENT
    OVERSIZED = "oversized", Cost.TIME, Effort.RESTRUCTURE
    OUTPUTS = "outputs", Cost.NONE, Effort.LINES
    UNUSED = "unused", Cost.NONE, Effort.ARGUMENT


NEARLY = 1.02  # times the least saving; a second figure that is closer says nothing


@dataclass(frozen=True, slots=True)
class Saving:
    """Bytes by which a change lowers the peak, which is `before`; or what an allocator reserves at the peak.

    Where the compiler decides how much a change saves, `at_least` is safe to count on, and it saves up to `at_most`;
    else both equal `expected`. `replay` is the change of the live bytes that saves least, to replay it with others, and
    with it the peak is at least `floor`. Without a replay, a change is not combined with others.

    XLA repeats operations where a program would not fit else. `if_repeated` and `repeating` are what is saved, and the
    change, if it repeats as many as now. `replay` may be about a program in which it repeats none.
    """

    before: int
    expected: int
    at_least: int
    at_most: int
    of: Literal["peak", "reserved"] = "peak"
    evidence: Evidence = "simulated"  # else the changed program was compiled, or the changed step of PyTorch traced
    time_ratio: float | None = None  # of a step, with the change, to that without: both compiled, and estimated
    replay: Change | None = None
    floor: int = 0
    if_repeated: int = 0
    repeating: Change | None = None

    @property
    def is_shown(self) -> bool:
        """Return whether the changed program has shown it, not a simulation."""
        return self.evidence != "simulated"

    @property
    def room(self) -> int:
        """The bytes less that a program can do with: they decide whether it fits."""
        return max(self.at_least, self.if_repeated)

    @property
    def up_to(self) -> int:
        """The second figure; the first one where both are nearly equal."""
        return self.at_most if self.at_most > NEARLY * self.at_least else self.at_least

    @property
    def effect(self) -> str:
        """The saving as the predicate of a sentence."""
        if self.is_shown:
            return f"lowers what the program reserves, as {self.evidence}, by {bytes_text(self.at_least)}"
        return f"lowers the peak by {range_text(self.at_least, self.up_to)}"


def range_text(safe: int, up_to: int) -> str:
    """Return `217 MiB (up to 834 MiB)`; one figure where both are the same, `up to 834 MiB` where none is safe."""
    low, high = bytes_text(safe), bytes_text(up_to)
    if low == high:
        return low
    return f"{low} (up to {high})" if safe else f"up to {high}"


NO_POSITIONS = np.empty(0, dtype=np.int64)


class Longer(NamedTuple):
    """The share by which one run of a program takes longer with a change: negative if it is shorter."""

    least: float
    most: float

    @property
    def expected(self) -> float:
        return (self.least + self.most) / 2


class Work(NamedTuple):
    """Work that a change adds to each run of a program, or leaves out."""

    again: I64 = NO_POSITIONS  # positions of instructions that run once more
    gone: I64 = NO_POSITIONS  # positions of instructions that only move what is no longer kept
    dropped: float = 0.0  # bytes that are no longer kept from when they are computed to their use
    nbytes: float = 0.0  # read and written besides, in the device's memory
    further: int = 0  # times that collectives may run again
    host_bytes: float = 0.0  # copied from and to the host
    exposed: bool = False  # asynchronous operations no longer run beside others


@dataclass(frozen=True, slots=True, eq=False)
class Advice:
    """A change to the code, its reason and its saving.

    `rows` are the allocations concerned, largest first, and `bytes` is their sum. Fragmentation is not part of live
    bytes; its saving is the memory in gaps, a part of the reserved bytes. `edits` carry the advice out without a change
    of the user's code, as `tb-memplugin fit --try` does. `work` is known for kinds of advice that cost time.
    """

    kind: AdviceKind
    title: str
    sentence: str
    change: str
    rows: I64
    bytes: int
    saving: Saving
    edits: tuple[str, ...] = ()
    work: Work | None = None
    longer: Longer | None = None  # simulated

    @property
    def lost_time(self) -> float:
        """The share of the time that a step is expected to lose, for comparisons; a guess where it is not known."""
        if self.saving.time_ratio is not None:
            return max(self.saving.time_ratio - 1, 0.0)
        return max(self.longer.expected, 0.0) if self.longer is not None else UNKNOWN_LOSS[self.cost]

    @property
    def saving_bytes(self) -> int:
        """What is safe to count on."""
        return self.saving.at_least

    def with_saving(self, saving: Saving) -> Advice:
        """Return the piece with another saving, also in its sentence."""
        return replace(self, sentence=self.sentence.replace(self.saving.effect, saving.effect), saving=saving)

    @property
    def cost(self) -> Cost:
        return self.kind.cost

    @property
    def effort(self) -> Effort:
        return self.kind.effort


def saving(recording: Recording, expected: Change, *bounds: Change, holds: float = 1) -> Saving | None:
    """Return what a change saves at the peak; None if the saving is too small to report.

    `bounds` are the same change under other decisions of the compiler: the saving is between the least and the most of
    all of them. If even one of them saves nothing, the change may cost memory, and there is no saving to report.
    `holds`: as for `promise`.
    """
    before, changes = peak(recording).bytes, (expected, *bounds)
    saved = [before - peak_after(recording, change).bytes for change in changes]
    return promise(recording, *saved, replay=changes[saved.index(min(saved))], holds=holds)


def promise(
    recording: Recording,
    expected: int,
    *bounds: int,
    replay: Change | None = None,
    floor: int = 0,
    holds: float = 1,
) -> Saving | None:
    """Return a saving of so many bytes, between the bounds; None if it is too small to report.

    `holds` is the share of what is expected that is safe to count on, because the compiler may decide otherwise.
    `replay` is about the change that saves least. Where it saves more by itself, the rest is memory that stays.
    """
    before, found = peak(recording).bytes, (expected, *bounds)
    least = min(found)
    if not is_worthwhile(recording, least):
        return None
    safe = min(least, int(holds * expected))
    saving = Saving(before, expected, safe, max(found), replay=replay, floor=floor)
    return safe_replay(recording, saving)


def safe_replay(recording: Recording, saved: Saving) -> Saving:
    """Return a saving whose replay saves no more by itself than what is safe to count on: the rest stays."""
    if saved.replay is None:
        return saved
    stays = saved.before - saved.at_least - peak_after(recording, saved.replay).bytes
    return replace(saved, replay=combine(saved.replay, always(recording, stays))) if stays > 0 else saved


# Choices, where the times of a program are not known: a step of the examples takes -30 to +20 % longer with
# rematerialization, and +12 to +87 % with its optimizer's state on the host.
UNKNOWN_LOSS = {Cost.NONE: 0.0, Cost.TIME: 0.1, Cost.RESULTS: 0.1, Cost.TRANSFERS: 0.4}
LITTLE_TIME = 0.02  # a choice: less does not decide which change to make first


def in_order(pieces: Iterable[Advice]) -> list[Advice]:
    """Return pieces by what is safe to count on, for the time that it costs; of equal ones the easier first."""
    costs, efforts = list(Cost), list(Effort)

    def key(one: Advice) -> tuple[float, int, int]:
        return -one.saving_bytes / (one.lost_time + LITTLE_TIME), costs.index(one.cost), efforts.index(one.effort)

    return sorted(pieces, key=key)


def is_worthwhile(recording: Recording, size: int) -> bool:
    return size >= MIN_BYTES and size * MIN_SHARE >= peak(recording).bytes


def sort_by_size(recording: Recording, rows: I64) -> I64:
    """Sort rows by size, largest first."""
    return rows[np.argsort(-recording.allocations.size[rows], kind="stable")]


def results_text(recording: Recording, rows: I64, both: I64) -> str:
    """Return a clause on the results that return arguments in other memory, as these count twice; else nothing."""
    table, kind = recording.allocations, recording.regions.kind
    regions = np.setdiff1d(table.region[both], table.region[rows])
    results = regions[(kind[regions] & RegionKind.OUTPUT) != 0]
    size = int(recording.regions.size[results].sum())
    return f", and {bytes_text(size)} of results return the new values" if is_worthwhile(recording, size) else ""


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
    """Return a piece that promises no more than holds if the compiler then repeats fewer operations."""
    saved = after_recomputation(recording, piece.saving, [piece.kind])
    if saved is piece.saving:
        return piece
    note = (
        f" The compiler runs {counted(compiler_recomputation(recording).operations, 'operation')} twice to make the "
        "program fit; then it runs fewer of them twice, so the peak may fall by less."
    )
    found = piece.with_saving(saved)
    return replace(found, sentence=found.sentence + note)


def after_recomputation(recording: Recording, saved: Saving, kinds: Collection[AdviceKind]) -> Saving:
    """Return what changes of these kinds save for sure where the compiler repeats operations.

    It repeats operations only until the program fits. A smaller program needs less of that, so that a change saves time
    instead of memory. In a program that still does not fit, it may choose others.
    """
    found, limit = compiler_recomputation(recording), memory_limit(recording)
    if not set(kinds) - {*EXACT} or not is_worthwhile(recording, found.saved_bytes):
        return saved
    excess = saved.before - limit if saved.before - saved.expected <= limit else 0
    at_least = min(max(saved.at_least - found.saved_bytes, excess, 0), saved.at_least)
    return replace(saved, at_least=at_least, if_repeated=saved.at_least)


def memory_limit(recording: Recording) -> int:
    """Return the memory that a program with repeated operations was compiled for, in bytes.

    Without a name of the chip, the peak decides: it is a little below the limit if the program fits. Else 0 is
    returned, as XLA has repeated all that it can.
    """
    if recording.capacity:
        return recording.capacity
    found, limits = peak(recording).bytes, {tpu.bytes for tpu in TPUS.values()}
    return min((limit for limit in limits if NEAR * limit <= found <= limit), default=0)
