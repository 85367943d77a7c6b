"""A refusal in plain words: how much was asked, what was there, why it did not fit, and what to do next."""

from __future__ import annotations

from tb_memplugin.analysis.oom import Cause, cause, missing_bytes
from tb_memplugin.analysis.usage.figures import Figure
from tb_memplugin.analysis.usage.live_bytes import explained_bytes, peak
from tb_memplugin.analysis.usage.live_set import live_rows
from tb_memplugin.model.out_of_memory import OutOfMemory, OutOfMemoryPhase
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import bytes_text
from tb_memplugin.views.shared.json_types import OutOfMemoryJson
from tb_memplugin.views.shared.oom_hints import remedies

ALWAYS = ("capacity", "asked")  # that these are not told is worth telling


def sentences(recording: Recording) -> list[str]:
    """What was asked, why it failed, and then what would help, most first. Empty for what was not refused."""
    refusal = recording.refusal
    if refusal is None:
        return []
    return [_asked(recording, refusal), _why(refusal), *remedies(recording, refusal)]


def headline(recording: Recording) -> str:
    return " ".join(sentences(recording)[:2])


def refused(recording: Recording) -> OutOfMemoryJson | None:
    """Plain values, for JSON; None for what was not refused."""
    refusal = recording.refusal
    if refusal is None:
        return None
    return {
        "asked_bytes": refusal.asked,
        "free_bytes": refusal.free,
        "largest_free_bytes": refusal.largest_free,
        "capacity_bytes": refusal.capacity,
        "in_use_bytes": refusal.in_use,
        "missing_bytes": missing_bytes(refusal),
        "phase": refusal.phase.value,
        "used_is": used_is(refusal),
        "reason": cause(refusal).value,
        "wanted_by": refusal.wanted_by,
        "sentences": sentences(recording),
    }


def used_is(refusal: OutOfMemory) -> str:
    """What the bytes of the recording are: `in use`, or `needed` by a program that was not let run."""
    return "needed" if refusal.in_use is None else "in use"


def _asked(recording: Recording, refusal: OutOfMemory) -> str:
    memory, asked, capacity = recording.memory, bytes_text(refusal.asked), bytes_text(refusal.capacity)
    for_what = f" for {refusal.wanted_by}" if refusal.wanted_by else ""
    if refusal.host:
        if refusal.asked is not None:
            return f"{asked} of host memory{for_what} could not be had."
        used = f", which held {bytes_text(refusal.in_use)}" if refusal.in_use is not None else ""
        return f"The system ended the process{used}."
    if refusal.asked is None:
        return f"{memory} ran out of memory; the text does not say how much was asked."
    if refusal.phase is OutOfMemoryPhase.COMPILE:
        holds = f", which holds {capacity}" if refusal.capacity is not None else ""
        subject = refusal.wanted_by or "The program"
        return f"{subject} needs {asked} of {memory}{holds}."
    there = _there(refusal)
    loading = "loading the program" if refusal.phase is OutOfMemoryPhase.LOAD else ""
    for_what = f" for {loading} {refusal.wanted_by}".rstrip() if loading else for_what
    whole = peak(recording).bytes if refusal.in_use is None else 0
    program = f" The program that it was for needs {bytes_text(whole)} in all." if whole else ""
    return f"{memory} was asked for {asked}{for_what}{there}.{program}"


def _there(refusal: OutOfMemory) -> str:
    if refusal.free is None:
        return f", and holds {bytes_text(refusal.capacity)}" if refusal.capacity is not None else ""
    of = f" of {bytes_text(refusal.capacity)}" if refusal.capacity is not None else ""
    piece = ""
    if refusal.largest_free is not None and refusal.largest_free < refusal.free:
        piece = f", {bytes_text(refusal.largest_free)} of it in one piece"
    return f"; {bytes_text(refusal.free)}{of} was free{piece}"


def _why(refusal: OutOfMemory) -> str:
    lacking = bytes_text(missing_bytes(refusal))
    match cause(refusal):
        case Cause.HOST if refusal.asked is None:
            return (
                "Exit code 137 and `Killed` are signal 9 (128 + 9), which nearly always means that the machine or its "
                "container ran out of host memory: the accelerator's memory has nothing to do with it."
            )
        case Cause.HOST:
            return "This is memory of the machine itself, not of the accelerator."
        case Cause.TOO_LARGE:
            return "This one allocation is larger than the whole memory, so freeing others cannot help."
        case Cause.FRAGMENTED:
            return "Enough is free, but not in one piece: the free memory is fragmented."
        case Cause.LIVE if refusal.phase is OutOfMemoryPhase.COMPILE:
            return (
                f"That is {lacking} too much." if missing_bytes(refusal) else "That is more than the compiler allows."
            )
        case Cause.LIVE:
            least = "at least " if refusal.largest_free is not None and refusal.largest_free != refusal.free else ""
            return f"Too much is live: {least}{lacking} more would have to be free."
        case _:
            return (
                "The text does not say enough to tell why: either too much was live, or the free memory was in pieces."
            )


def figures(recording: Recording) -> list[Figure]:
    """Those that the text tells, in the order in which they are read."""
    refusal = recording.refusal or OutOfMemory()
    top = peak(recording).bytes
    listed = int(explained_bytes(recording)[0])
    rows = recording.allocations
    live = live_rows(recording, 0)
    padding = int((rows.size[live] - rows.requested[live]).sum())
    scattered = None
    if refusal.free is not None and refusal.largest_free is not None:
        scattered = max(refusal.free - refusal.largest_free, 0) or None
    every = [
        Figure("live_peak", used_is(refusal).capitalize(), top or None,
               "All that the text says was in use, or that the program would need."),
        Figure("capacity", "Capacity", recording.capacity, "What this memory holds."),
        Figure("asked", "Asked", refusal.asked, "What was asked and refused."),
        Figure("missing", "Missing", missing_bytes(refusal) or None,
               "What must go for it to fit, if what is free were one piece."),
        Figure("free", "Free", refusal.free, "What was left, in all."),
        Figure("largest_free", "Largest free piece", refusal.largest_free,
               "The most that could have been had at once."),
        Figure("fragmented", "Fragmented", scattered, "Free memory outside the largest free piece."),
        Figure("listed", "Listed", listed or None, "What the text tells buffer by buffer."),
        Figure("padding", "Padding", padding or None,
               "Bytes that hold no data: buffers are rounded up to the tiles of their layout."),
        Figure("reported_peak", "Lifetime peak", recording.reported_peak,
               "The most in use since the allocator began, as it says itself."),
    ]  # fmt: skip
    return [figure for figure in every if figure.bytes is not None or figure.key in ALWAYS]
