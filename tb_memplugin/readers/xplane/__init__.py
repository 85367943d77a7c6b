"""<host>.xplane.pb: the programs that a profile carries, and what its allocators did."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial

from tb_memplugin.errors import InputError
from tb_memplugin.model.kinds import RecordingKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.readers.common.part import Part
from tb_memplugin.readers.hlo import read_hlo
from tb_memplugin.readers.hlo.recordings import memory_name
from tb_memplugin.readers.xplane import programs
from tb_memplugin.readers.xplane.allocator import events as allocator_events
from tb_memplugin.readers.xplane.allocator.recordings import read_allocators
from tb_memplugin.readers.xplane.device.memory_size import SOURCE, device_memory
from tb_memplugin.readers.xplane.device.spans import cores
from tb_memplugin.readers.xplane.no_events import reason
from tb_memplugin.readers.xplane.planes import Plane, planes


def open_xplane(data: bytes | memoryview, path: str, *, run: str = "", host: str = "") -> list[Part]:
    """The programs of a profile by their key, `jit_train_step(34)`, and its allocators. InputError where it is none.

    Of the planes, which are most of the file, only those that tell of memory are opened.
    """
    try:
        opened = planes(data)
        found = [program for p in opened if p.name == programs.PLANE for program in programs.programs(p)]
        # A profile without the plane has a part all the same, that says why nothing is in it.
        hosts = [p for p in opened if p.name == allocator_events.PLANE] or [Plane(memoryview(b""))]
    except ValueError as error:
        raise InputError(
            f"not a profile, or a damaged one ({error})", path, "copy the file again, or profile again"
        ) from error
    capacity = cache(partial(device_memory, opened))  # asked by whichever program is read first
    parts: dict[str, Part] = {}
    for key, program in found:
        # The format keys programs by an id of their own, so the same key twice is a broken writer's: keep both.
        title = key if key not in parts else f"{key}#{len(parts)}"
        read = partial(_read_program, program, capacity, title=title, run=run, host=host, source=path)
        parts[title] = Part(title, RecordingKind.PROGRAM, path, len(program), read)
    why_none = partial(reason, opened)
    reads = [partial(read_allocators, plane, cores(opened), run=run, host=host, source=path) for plane in hosts]
    allocators = [
        Part("allocators", RecordingKind.ALLOCATOR, path, len(plane.data), read, why_none)
        for plane, read in zip(hosts, reads, strict=True)
    ]
    return [*parts.values(), *allocators]


def _read_program(
    data: memoryview, capacity: Callable[[], int | None], *, title: str, run: str, host: str, source: str
) -> list[Recording]:
    """What a program keeps in the devices' main memory must fit into that."""
    recordings = read_hlo(data, title=title, run=run, host=host, source=source)
    main = memory_name(0)
    return [
        replace(found, capacity=capacity(), capacity_source=SOURCE) if found.memory == main else found
        for found in recordings
    ]
