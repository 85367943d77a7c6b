"""Out-of-memory failures: the request, the free memory, and the cause."""

from __future__ import annotations

from tb_memplugin.analysis.usage.figure_definitions import OUT_OF_MEMORY, Figure, define
from tb_memplugin.analysis.usage.headroom import Cause, cause, missing_bytes
from tb_memplugin.analysis.usage.live_bytes import explained_bytes, peak
from tb_memplugin.analysis.usage.live_set import live_rows
from tb_memplugin.model.out_of_memory import OutOfMemory, OutOfMemoryPhase
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.json_types import OutOfMemoryJson
from tb_memplugin.questions.oom.hints import hints
from tb_memplugin.sizes import bytes_text

ALWAYS_SHOWN = ("capacity", "asked")  # figures that are shown as unknown if the text lacks them


def sentences(recording: Recording) -> list[str]:
    """Return the request, the cause and then the hints, most helpful first. Empty without a failure."""
    failure = recording.out_of_memory
    if failure is None:
        return []
    return [_request_sentence(recording, failure), _cause_sentence(failure), *hints(recording, failure)]


def headline(recording: Recording) -> str:
    return " ".join(sentences(recording)[:2])


def out_of_memory(recording: Recording) -> OutOfMemoryJson | None:
    """Return the failure in JSON-compatible values; None without one."""
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
        "lines_before": list(failure.lines_before),
    }


def used_is(failure: OutOfMemory) -> str:
    """Return the kind of the recording's bytes: `in use`, or `needed` by a program that never ran."""
    return "needed" if failure.in_use is None else "in use"


def _request_sentence(recording: Recording, failure: OutOfMemory) -> str:
    if failure.request:
        return failure.request
    memory, requested, capacity = recording.memory, bytes_text(failure.asked), bytes_text(failure.capacity)
    purpose = f" for {failure.wanted_by}" if failure.wanted_by else ""
    if failure.host:
        if failure.asked is not None:
            return f"An allocation of {requested} in host memory{purpose} failed."
        used = f", which used {bytes_text(failure.in_use)}" if failure.in_use is not None else ""
        return f"The operating system killed the process{used}."
    if failure.asked is None:
        return f"{memory} ran out of memory; the text does not contain the size of the request."
    if failure.phase is OutOfMemoryPhase.COMPILE:
        has = "where the limit of a kernel is" if failure.kernel_limit else "which has"
        size = f", {has} {capacity}" if failure.capacity is not None else ""
        return f"{failure.wanted_by or 'The program'} needs {requested} of {memory}{size}."
    if failure.phase is OutOfMemoryPhase.LOAD:
        purpose = f" to load the program {failure.wanted_by}".rstrip()
    total = peak(recording).bytes if failure.in_use is None else 0
    program = f" The whole program needs {bytes_text(total)}." if total else ""
    return f"An allocation of {requested} in {memory}{purpose} failed{_free_text(failure)}.{program}"


def _free_text(failure: OutOfMemory) -> str:
    if failure.free is None:
        return f"; the capacity is {bytes_text(failure.capacity)}" if failure.capacity is not None else ""
    capacity = f" of {bytes_text(failure.capacity)}" if failure.capacity is not None else ""
    block = ""
    if failure.largest_free is not None and failure.largest_free < failure.free:
        block = f", the largest free block {bytes_text(failure.largest_free)}"
    return f"; {bytes_text(failure.free)}{capacity} was free{block}"


def _cause_sentence(failure: OutOfMemory) -> str:
    if failure.reason:
        return failure.reason
    missing = missing_bytes(failure)
    match cause(failure):
        case Cause.HOST if failure.asked is None:
            return (
                "Exit code 137 and `Killed` mean signal 9 (128 + 9). The usual cause is that the machine or its "
                "container ran out of host memory; the accelerator's memory is not involved."
            )
        case Cause.HOST:
            return "Host memory is the memory of the machine, not of the accelerator."
        case Cause.TOO_LARGE:
            return "This one allocation is larger than the whole memory, so freeing other memory cannot help."
        case Cause.FRAGMENTED:
            return "Enough memory is free in total, but not in one block: the free memory is fragmented."
        case Cause.UNEXPLAINED:
            return (
                f"The figures do not explain it: {bytes_text(failure.largest_free or failure.free)} was free. This is "
                "no shortage of memory."
            )
        case Cause.LIVE if failure.phase is OutOfMemoryPhase.COMPILE:
            return f"That is {bytes_text(missing)} too much." if missing else "That is more than the compiler allows."
        case Cause.LIVE:
            exact = failure.largest_free is None or failure.largest_free == failure.free
            return f"Too much memory is in use: {'' if exact else 'at least '}{bytes_text(missing)} more must be free."
        case _:
            return (
                "The text has too few figures to identify the cause: either too much memory was in use, or the free "
                "memory was fragmented."
            )


def figures(recording: Recording) -> list[Figure]:
    """Return the figures that the text contains, in reading order."""
    failure = recording.out_of_memory or OutOfMemory()
    top = peak(recording).bytes
    listed = int(explained_bytes(recording)[0])
    rows = recording.allocations
    live = live_rows(recording, 0)
    padding = int((rows.size[live] - rows.requested[live]).sum())
    fragmented = None
    if failure.free is not None and failure.largest_free is not None:
        fragmented = max(failure.free - failure.largest_free, 0) or None
    candidates = [
        define(OUT_OF_MEMORY, "live_peak", top or None, used_is(failure).capitalize()),
        define(OUT_OF_MEMORY, "capacity", recording.capacity),
        define(OUT_OF_MEMORY, "asked", failure.asked),
        define(OUT_OF_MEMORY, "missing", missing_bytes(failure) or None),
        define(OUT_OF_MEMORY, "free", failure.free),
        define(OUT_OF_MEMORY, "largest_free", failure.largest_free),
        define(OUT_OF_MEMORY, "fragmented", fragmented),
        define(OUT_OF_MEMORY, "listed", listed or None),
        define(OUT_OF_MEMORY, "padding", padding or None),
        define(OUT_OF_MEMORY, "reported_peak", recording.reported_peak),
    ]  # fmt: skip
    return [figure for figure in candidates if figure.bytes is not None or figure.key in ALWAYS_SHOWN]
