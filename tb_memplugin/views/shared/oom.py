"""A failure in plain words: how much was asked, what was there, why it did not fit, and what to do next."""

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
    """Return the request, the cause and then the hints, most helpful first. Empty without a failure."""
    failure = recording.out_of_memory
    if failure is None:
        return []
    return [_asked(recording, failure), _why(failure), *remedies(recording, failure)]


def headline(recording: Recording) -> str:
    return " ".join(sentences(recording)[:2])


def out_of_memory(recording: Recording) -> OutOfMemoryJson | None:
    """Plain values, for JSON; None for what was not refused."""
    failure = recording.out_of_memory
    if failure is None:
        return None
    return {
        "asked_bytes": failure.asked,
        "free_bytes": failure.free,
        "largest_free_bytes": failure.largest_free,
        "capacity_bytes": failure.capacity,
        "in_use_bytes": failure.in_use,
        "missing_bytes": missing_bytes(failure),
        "phase": failure.phase.value,
        "used_is": used_is(failure),
        "reason": cause(failure).value,
        "wanted_by": failure.wanted_by,
        "sentences": sentences(recording),
    }


def used_is(failure: OutOfMemory) -> str:
    """What the bytes of the recording are: `in use`, or `needed` by a program that was not let run."""
    return "needed" if failure.in_use is None else "in use"


def _asked(recording: Recording, failure: OutOfMemory) -> str:
    memory, asked, capacity = recording.memory, bytes_text(failure.asked), bytes_text(failure.capacity)
    for_what = f" for {failure.wanted_by}" if failure.wanted_by else ""
    if failure.host:
        if failure.asked is not None:
            return f"{asked} of host memory{for_what} could not be had."
        used = f", which held {bytes_text(failure.in_use)}" if failure.in_use is not None else ""
        return f"The system ended the process{used}."
    if failure.asked is None:
        return f"{memory} ran out of memory; the text does not say how much was asked."
    if failure.phase is OutOfMemoryPhase.COMPILE:
        holds = f", which holds {capacity}" if failure.capacity is not None else ""
        subject = failure.wanted_by or "The program"
        return f"{subject} needs {asked} of {memory}{holds}."
    there = _there(failure)
    loading = "loading the program" if failure.phase is OutOfMemoryPhase.LOAD else ""
    for_what = f" for {loading} {failure.wanted_by}".rstrip() if loading else for_what
    whole = peak(recording).bytes if failure.in_use is None else 0
    program = f" The program that it was for needs {bytes_text(whole)} in all." if whole else ""
    return f"{memory} was asked for {asked}{for_what}{there}.{program}"


def _there(failure: OutOfMemory) -> str:
    if failure.free is None:
        return f", and holds {bytes_text(failure.capacity)}" if failure.capacity is not None else ""
    of = f" of {bytes_text(failure.capacity)}" if failure.capacity is not None else ""
    piece = ""
    if failure.largest_free is not None and failure.largest_free < failure.free:
        piece = f", {bytes_text(failure.largest_free)} of it in one piece"
    return f"; {bytes_text(failure.free)}{of} was free{piece}"


def _why(failure: OutOfMemory) -> str:
    lacking = bytes_text(missing_bytes(failure))
    match cause(failure):
        case Cause.HOST if failure.asked is None:
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
        case Cause.LIVE if failure.phase is OutOfMemoryPhase.COMPILE:
            return (
                f"That is {lacking} too much." if missing_bytes(failure) else "That is more than the compiler allows."
            )
        case Cause.LIVE:
            least = "at least " if failure.largest_free is not None and failure.largest_free != failure.free else ""
            return f"Too much is live: {least}{lacking} more would have to be free."
        case _:
            return (
                "The text does not say enough to tell why: either too much was live, or the free memory was in pieces."
            )


def figures(recording: Recording) -> list[Figure]:
    """Those that the text tells, in the order in which they are read."""
    failure = recording.out_of_memory or OutOfMemory()
    top = peak(recording).bytes
    listed = int(explained_bytes(recording)[0])
    rows = recording.allocations
    live = live_rows(recording, 0)
    padding = int((rows.size[live] - rows.requested[live]).sum())
    scattered = None
    if failure.free is not None and failure.largest_free is not None:
        scattered = max(failure.free - failure.largest_free, 0) or None
    every = [
        Figure("live_peak", used_is(failure).capitalize(), top or None,
               "All that the text says was in use, or that the program would need."),
        Figure("capacity", "Capacity", recording.capacity, "What this memory holds."),
        Figure("asked", "Asked", failure.asked, "What was asked and refused."),
        Figure("missing", "Missing", missing_bytes(failure) or None,
               "What must go for it to fit, if what is free were one piece."),
        Figure("free", "Free", failure.free, "What was left, in all."),
        Figure("largest_free", "Largest free piece", failure.largest_free,
               "The most that could have been had at once."),
        Figure("fragmented", "Fragmented", scattered, "Free memory outside the largest free piece."),
        Figure("listed", "Listed", listed or None, "What the text tells buffer by buffer."),
        Figure("padding", "Padding", padding or None,
               "Bytes that hold no data: buffers are rounded up to the tiles of their layout."),
        Figure("reported_peak", "Lifetime peak", recording.reported_peak,
               "The most in use since the allocator began, as it says itself."),
    ]  # fmt: skip
    return [figure for figure in every if figure.bytes is not None or figure.key in ALWAYS]
