"""One failure is told by the allocator, by XLA, by the framework and by the traceback: here it becomes one again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tb_memplugin.model.out_of_memory import OutOfMemory
from tb_memplugin.readers.oom_text.failure import Failure

NEAR = 8  # failures back: what is told twice is told at once
ONE_ALLOCATION = {"bfc", "xla", "tensor", "driver"}  # tools that tell the same request from above and below


def merged(failures: Iterable[Failure]) -> list[Failure]:
    """In order of the text."""
    kept: list[Failure] = []
    for failure in sorted(failures, key=lambda failure: failure.at):
        for index in range(len(kept) - 1, max(len(kept) - NEAR, 0) - 1, -1):
            if (joined := _joined(kept[index], failure)) is not None:
                kept[index] = joined
                break
        else:
            kept.append(failure)
    return kept


def _joined(earlier: Failure, later: Failure) -> Failure | None:
    """None where they are two."""
    if earlier.tool == "remat" and later.tool in ("remat", "xla", "bfc"):
        told = () if later.tool == "remat" else earlier.caveats
        return replace(later, at=earlier.at, caveats=(*later.caveats, *told))
    if not _one_memory(earlier, later) or not _one_size(earlier.out_of_memory.asked, later.out_of_memory.asked):
        return None
    if not _same_list(earlier, later) if earlier.tool == later.tool else not _same_request(earlier, later):
        return None
    first, second = (earlier, later) if _weight(earlier) > _weight(later) else (later, earlier)
    return replace(
        first,
        at=min(first.at, second.at),
        memory=first.memory or second.memory,
        program=first.program or second.program,
        out_of_memory=_filled(first.out_of_memory, second.out_of_memory),
        caveats=(*first.caveats, *(caveat for caveat in second.caveats if caveat not in first.caveats)),
    )


def _same_list(earlier: Failure, later: Failure) -> bool:
    """One message again, whole or cut off."""
    again = earlier.rows.bytes == later.rows.bytes and _rows(earlier) == _rows(later)
    return again or not _rows(earlier) or not _rows(later) or earlier.cut or later.cut


def _same_request(earlier: Failure, later: Failure) -> bool:
    """Told by two tools: the buffers of the program, or those of the allocator, but not both as one."""
    return {earlier.tool, later.tool} <= ONE_ALLOCATION and not (_rows(earlier) and _rows(later))


def _filled(first: OutOfMemory, second: OutOfMemory) -> OutOfMemory:
    """What the one does not say, the other may."""

    def either(name: str) -> int | None:
        known: int | None = getattr(first, name)
        other: int | None = getattr(second, name)
        return other if known is None else known

    wanted = [second.wanted_by, first.wanted_by] if second.wanted_by != first.wanted_by else [first.wanted_by]
    short, *longer = sorted(filter(None, wanted), key=len) or [""]
    return replace(
        first,
        asked=either("asked"),
        free=either("free"),
        largest_free=either("largest_free"),
        capacity=either("capacity"),
        in_use=either("in_use"),
        wanted_by=longer[0] if longer and short in longer[0] else ", ".join([short, *longer]),
    )


def _one_memory(earlier: Failure, later: Failure) -> bool:
    return earlier.memory == later.memory or not earlier.memory or not later.memory


def _one_size(one: int | None, other: int | None) -> bool:
    """Allocators round up to 256 bytes, and a size printed in three digits is off by half a percent."""
    if one is None or other is None:
        return one is other
    return abs(one - other) * 200 <= max(one, other) + 200 * 512


def _rows(failure: Failure) -> int:
    return len(failure.rows.allocations)


def _numbers(failure: Failure) -> int:
    said = failure.out_of_memory
    return sum(number is not None for number in (said.asked, said.free, said.capacity, said.in_use))


def _weight(failure: Failure) -> tuple[int, int]:
    return _rows(failure), _numbers(failure)


def most_telling_first(failures: Iterable[Failure]) -> list[Failure]:
    """Those that list buffers, then those with more numbers; of equals the last, which ended the run."""
    return sorted(
        failures, key=lambda failure: (_rows(failure) > 0, min(_numbers(failure), 2), failure.at), reverse=True
    )
