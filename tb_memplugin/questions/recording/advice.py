"""Advice: changes that lower the peak of a recording, with sentences and code."""

from collections.abc import Iterator, Sequence
from typing import Literal, TypedDict

import numpy as np

from tb_memplugin.analysis.advice import Advice, Cost, Effort, advise
from tb_memplugin.analysis.advice.compiled import compiled_savings, with_compiled
from tb_memplugin.analysis.advice.fitting import fitting_set
from tb_memplugin.analysis.advice.model import Evidence, range_text
from tb_memplugin.analysis.usage.headroom import fits_after, headroom
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.fit import Outcome
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.asked import Asked
from tb_memplugin.questions.asking.endpoint import EACH_CHOICE, endpoint
from tb_memplugin.questions.asking.inputs import RECORDING, RUNS
from tb_memplugin.questions.asking.source import Runs
from tb_memplugin.questions.recording.summary import RecordingAnswerJson, about
from tb_memplugin.questions.records import record
from tb_memplugin.sizes import bytes_text, percent_text

MAX_LINES = 5  # pieces printed in the terminal


class LongerJson(TypedDict):
    """By which share a step takes longer with a change: negative if it is shorter. Both may be equal."""

    least: float
    """At least."""
    most: float
    """At most."""


class AdviceLineJson(TypedDict):
    """A change that lowers the peak: its saving, and what it takes."""

    kind: str
    """The kind of change, such as `donation`."""
    title: str
    """The change in a few words."""
    saving_bytes: int
    """The saving of this change by itself, as far as is safe to count on."""
    saving_at_most_bytes: int
    """The most that it saves, where the compiler decides; else `saving_bytes`."""
    saving_of: Literal["peak", "reserved"]
    """The figure that it lowers: the peak, or what an allocator reserves at the peak, for memory in gaps."""
    before_bytes: int
    """That figure now."""
    after_bytes: int
    """`before_bytes` less `saving_bytes`."""
    fits: bool | None
    """True if the recording fits its memory with this change alone; null if the memory is unknown."""
    evidence: Evidence
    """`compiled` or `traced` where the changed program has shown the saving, else `simulated` on the recording."""
    effort: Effort
    """The work of making the change."""
    cost: Cost
    """The cost of the change in each step."""
    time_ratio: float | None
    """The estimated time of a step with the change, relative to that now; null where it was not compiled."""
    longer: LongerJson | None
    """The cost in time, simulated by the estimated times of instructions; null where that is not known."""


class AdviceJson(AdviceLineJson):
    """A change that lowers the peak, with its reason, its code and its buffers."""

    sentence: str
    """The reason why it helps."""
    change: str
    """The code to write."""
    bytes: int
    """The bytes of the buffers it concerns."""
    rows: list[tuple[int, int]]
    """The buffers it concerns: ranges of rows of the recording, the first and the last of each."""
    rows_total: int
    """The number of buffers that it concerns."""


class FitsWithJson(TypedDict):
    """The smallest set of changes with which a program fits, simulated together."""

    pieces: list[int]
    """Numbers of the changes in `advice`, from 0."""
    after_bytes: int
    """The bytes that must fit with all of them."""
    fits: bool
    """False if no set is enough: then it is the one that saves most."""
    evidence: Evidence
    """`compiled` or `traced` where the changed program has shown it, else `simulated`."""


class AdviceListJson(TypedDict):
    """All changes that lower the peak of a recording, the largest saving for the time that it costs first."""

    peak_bytes: int
    """The recording's peak."""
    limit_bytes: int | None
    """The memory that it must fit; null if unknown."""
    fits_with: FitsWithJson | None
    """The changes to make first where it does not fit; null if it fits, or the limit is unknown."""
    advice: list[AdviceJson]
    """The changes, each simulated on its own, the largest saving for the time that it costs first."""


@endpoint("advice", RECORDING, RUNS, report=EACH_CHOICE)
def advice_in_logdir(recording: Recording, runs: Runs) -> AdviceListJson:
    """Return all advice about a recording, and the changes with which it fits."""
    kind = recording.kind
    return advice(recording, runs.fit().outcomes if kind.has_program or kind.has_tensor_stacks else ())


def advice(recording: Recording, outcomes: Sequence[Outcome] = (), again: Outcome | None = None) -> AdviceListJson:
    """Return all advice about a recording; `outcomes` are the candidates of fits in its logdir.

    `again` is one of them: the recording's own program, compiled or traced once more.
    """
    compiled = compiled_savings(recording, outcomes, again)
    pieces = with_compiled(recording, advise(recording), compiled)
    found = fitting_set(recording, pieces, compiled)
    return {
        "peak_bytes": peak(recording).bytes,
        "limit_bytes": headroom(recording).capacity,
        "fits_with": None if found is None else record(FitsWithJson, found, evidence=found.evidence),
        "advice": [_piece(recording, piece) for piece in pieces],
    }


def _piece(recording: Recording, piece: Advice) -> AdviceJson:
    saved, longer = piece.saving, piece.longer if piece.saving.time_ratio is None else None
    return record(
        AdviceJson,
        piece,
        kind=piece.kind.value,
        saving_at_most_bytes=saved.up_to,
        saving_of=saved.of,
        before_bytes=saved.before,
        after_bytes=saved.before - piece.saving_bytes,
        fits=fits_after(recording, saved.room if saved.of == "peak" or saved.is_shown else 0),
        evidence=saved.evidence,
        time_ratio=None if saved.time_ratio is None else round(saved.time_ratio, 2),
        longer=None if longer is None else {"least": round(longer.least, 3), "most": round(longer.most, 3)},
        rows=_ranges(piece.rows),
        rows_total=len(piece.rows),
    )


def _ranges(rows: I64) -> list[tuple[int, int]]:
    """Return the first and the last of each run of consecutive numbers, in ascending order."""
    ordered = np.sort(rows)
    first = np.diff(ordered, prepend=-2) != 1
    last = np.roll(first, -1)
    return list(zip(ordered[first].tolist(), ordered[last].tolist(), strict=True))


def lines(found: AdviceListJson) -> Iterator[str]:
    """Yield lines of text for advice. Names are raw: the caller removes control characters."""
    pieces = found["advice"]
    if not pieces:
        return
    if found["fits_with"] is not None:
        yield fits_with_text(found)
        yield ""
    yield "Advice, each change simulated on its own, the largest saving for the time that it costs first:"
    for piece in pieces[:MAX_LINES]:
        yield ""
        yield f"  {saving_line(piece)}  {piece['title']}"
        yield f"      {piece['sentence']}"
        yield f"      Effort: {piece['effort']}. Cost: {piece['cost']}{time_text(piece)}."
        yield from (f"      {line}" for line in piece["change"].splitlines())
    if len(pieces) > MAX_LINES:
        yield ""
        yield f"and {len(pieces) - MAX_LINES:,} more; --json lists all"


def fits_with_text(found: AdviceListJson) -> str:
    """Return `Fits with: Use four microbatches of 64: 14.80 GiB of 15.75 GiB, simulated`."""
    best = found["fits_with"]
    assert best is not None
    titles = " + ".join(found["advice"][number]["title"] for number in best["pieces"])
    needs = f"{bytes_text(best['after_bytes'], 4)} of {bytes_text(found['limit_bytes'], 4)}, {best['evidence']}"
    return f"Fits with: {titles}: {needs}" if best["fits"] else f"Does not fit even with: {titles}: {needs}"


def saving_line(piece: AdviceLineJson) -> str:
    """Return `-217 MiB (up to -834 MiB), 6% of the peak`."""
    saved, most = piece["saving_bytes"], piece["saving_at_most_bytes"]
    of = "reserved" if piece["saving_of"] == "reserved" else "the peak"
    shown = "" if piece["evidence"] == "simulated" else f", {piece['evidence']}"
    return f"{range_text(-saved, -most)}, {percent_text(saved, piece['before_bytes'])} of {of}{shown}"


def time_text(piece: AdviceLineJson) -> str:
    """Return `: a step takes 9% less time (compiled, estimated)`; empty where nothing is known, or nothing is lost."""
    ratio, longer = piece["time_ratio"], piece["longer"]
    if ratio is not None:
        return f": a step takes {_change_text(ratio - 1)} (compiled, estimated)"
    if longer is None or piece["cost"] == Cost.NONE:
        return ""
    least, most = _change_text(longer["least"]), _change_text(longer["most"])
    if round(longer["least"], 2) == 0 < round(longer["most"], 2):
        return f": a step takes up to {most} (simulated, estimated)"
    return f": a step takes {least if least == most else f'from {least} to {most}'} (simulated, estimated)"


def _change_text(longer: float) -> str:
    """Return `9% longer`, `9% less time` or `as long as now`."""
    if round(abs(longer), 2) == 0:
        return "as long as now"
    return f"{percent_text(abs(longer), 1.0)} {'longer' if longer > 0 else 'less time'}"


class AdviceAnswerJson(RecordingAnswerJson, AdviceListJson):
    """The changes that lower the peak of a recording, the largest saving for the time that it costs first."""


def advice_answer(
    recording: Recording, asked: Asked, outcomes: Sequence[Outcome] = (), again: Outcome | None = None
) -> AdviceAnswerJson:
    """Return the first pieces of advice about a recording, as `advice` does."""
    found = advice(recording, outcomes, again)
    rows = [piece["rows"][0][0] for piece in found["advice"][:1] if piece["rows"]]
    why = "a buffer of the first piece of advice"
    further = [asked.question("buffers", why, recording.id, row=row) for row in rows]
    return asked.answer(AdviceAnswerJson, about(recording), found, next=further)
