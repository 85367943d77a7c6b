"""<host>.xplane.pb: the programs that a profile carries, and what its allocators did."""

from __future__ import annotations

from functools import partial

from tb_memplugin.errors import InputError
from tb_memplugin.readers import allocator_events, programs
from tb_memplugin.readers.allocator import read_allocators
from tb_memplugin.readers.device_spans import cores
from tb_memplugin.readers.hlo import read_hlo
from tb_memplugin.readers.part import Part
from tb_memplugin.readers.plane import Plane, planes
from tb_memplugin.readers.silence import reason


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
    parts: dict[str, Part] = {}
    for key, program in found:
        # The format keys programs by an id of their own, so the same key twice is a broken writer's: keep both.
        title = key if key not in parts else f"{key}#{len(parts)}"
        read = partial(read_hlo, program, title=title, run=run, host=host, source=path)
        parts[title] = Part(title, "program", path, len(program), read)
    why_none = partial(reason, opened)
    reads = [partial(read_allocators, plane, cores(opened), run=run, host=host, source=path) for plane in hosts]
    allocators = [
        Part("allocators", "allocator", path, len(plane.data), read, why_none)
        for plane, read in zip(hosts, reads, strict=True)
    ]
    return [*parts.values(), *allocators]
