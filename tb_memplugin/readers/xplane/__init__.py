"""XPlane profiles (<host>.xplane.pb): the compiled programs in them, and the events of allocators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial

from tb_memplugin.errors import InputError
from tb_memplugin.model.accelerators import Chip, with_chip
from tb_memplugin.model.kinds import RecordingKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.readers.common.budget import ReadBudget
from tb_memplugin.readers.common.part import FilePart, NoEventsReason, own
from tb_memplugin.readers.hlo import read_hlo
from tb_memplugin.readers.hlo.recordings import memory_name
from tb_memplugin.readers.xplane.no_events import no_events_reason
from tb_memplugin.readers.xplane.planes import (
    CAPACITY_SOURCE,
    HOST_PLANE,
    METADATA_PLANE,
    Plane,
    allocator_event_ids,
    device_chip,
    device_memory_size,
    read_planes,
    read_programs,
)


def open_xplane(data: bytes | memoryview, path: str, *, run: str = "", host: str = "") -> list[FilePart]:
    """List the parts of an XSpace: its programs, titled by key, `jit_train_step(34)`, and its allocators.

    Most planes are never parsed: only those that concern memory are. Raises InputError where the bytes are no profile.
    """
    try:
        budget = ReadBudget(data, path)
        planes = read_planes(data, budget)
        found = [program for p in planes if p.name == METADATA_PLANE for program in read_programs(p)]
        # A profile without a host plane has an allocator part too: the part gives the reason for its lack of events.
        hosts = [p for p in planes if p.name == HOST_PLANE] or [Plane(memoryview(b""))]
    except ValueError as error:
        raise _damaged(error, path) from error
    capacity = cache(partial(device_memory_size, planes))  # computed for the first program that is read
    chip = cache(partial(device_chip, planes))
    parts: dict[str, FilePart] = {}
    for key, program in found:
        # A key contains the program's unique id, so only a faulty writer repeats one. Keep both programs.
        title = key if key not in parts else f"{key}#{len(parts)}"
        read = partial(_read_program, program, budget, capacity, chip, title=title, run=run, host=host, source=path)
        parts[title] = FilePart(title, RecordingKind.PROGRAM, path, len(program), read, content=program)
    no_events = partial(_no_events, planes, path)
    read_host = partial(_read_allocators, planes, run=run, host=host, source=path)
    allocators = [
        FilePart("allocators", RecordingKind.ALLOCATOR, path, len(plane.data), partial(read_host, plane), no_events)
        for plane in hosts
    ]
    return [*parts.values(), *allocators]


def _read_allocators(
    planes: Sequence[Plane], host_plane: Plane, *, run: str, host: str, source: str
) -> list[Recording]:
    """Read the allocators of a host's plane. The readers of events are imported for a plane that has some."""
    try:
        if not allocator_event_ids(host_plane):
            return []
    except ValueError:
        pass  # the reader says what is damaged
    from tb_memplugin.readers.xplane.allocator.recordings import read_allocators
    from tb_memplugin.readers.xplane.spans import tpu_core_planes

    return read_allocators(host_plane, tpu_core_planes(planes), run=run, host=host, source=source)


def _no_events(planes: Sequence[Plane], path: str) -> NoEventsReason:
    try:
        return no_events_reason(planes)
    except ValueError as error:
        raise _damaged(error, path) from error


def _damaged(error: ValueError, path: str) -> InputError:
    return InputError(f"not an XPlane profile, or damaged ({error})", path, "copy the file again, or profile again")


def _read_program(
    data: memoryview,
    budget: ReadBudget,
    capacity: Callable[[], int | None],
    chip: Callable[[], Chip | None],
    *,
    title: str,
    run: str,
    host: str,
    source: str,
) -> list[Recording]:
    """Read a program, with the limits of the devices' chip, or the capacity of their main memory."""
    recordings = read_hlo(own(data), title=title, run=run, host=host, source=source, budget=budget)
    if (found_chip := chip()) is not None:
        return with_chip(recordings, found_chip, "the profile")
    main = memory_name(0)
    return [
        replace(found, capacity=capacity(), capacity_source=CAPACITY_SOURCE) if found.memory == main else found
        for found in recordings
    ]
