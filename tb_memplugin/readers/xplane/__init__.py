"""XPlane profiles (<host>.xplane.pb): the compiled programs in them, and allocator events or why there are none."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from tb_memplugin.errors import InputError
from tb_memplugin.model.accelerators import with_chip, with_speed
from tb_memplugin.model.caveats import NoEventsCode
from tb_memplugin.model.kinds import RecordingKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.native.protobuf.messages import Plan, scan
from tb_memplugin.native.xplane.all_events import any_event
from tb_memplugin.protos.xplane_fields import ProfileOptions
from tb_memplugin.readers.common.budget import ReadBudget
from tb_memplugin.readers.common.part import FilePart, NoEventsReason, own
from tb_memplugin.readers.hlo import read_hlo
from tb_memplugin.readers.hlo.recordings import memory_name
from tb_memplugin.readers.xplane.planes import (
    CAPACITY_SOURCE,
    HOST_PLANE,
    METADATA_PLANE,
    Plane,
    allocator_event_ids,
    device_chip,
    device_memory_size,
    device_speed,
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
    chip, speed = cache(partial(device_chip, planes)), cache(partial(device_speed, planes))

    def read_program(title: str, program: memoryview) -> list[Recording]:
        """Read a program, with the limits of the devices' chip, or the capacity of their main memory."""
        recordings = read_hlo(own(program), title=title, run=run, host=host, source=path, budget=budget)
        if (found_chip := chip()) is not None:
            return with_chip(recordings, found_chip, "the profile")
        main = memory_name(0)
        return [
            replace(found, capacity=capacity(), capacity_source=CAPACITY_SOURCE) if found.memory == main else found
            for found in with_speed(recordings, speed())
        ]

    parts: dict[str, FilePart] = {}
    for key, program in found:
        # A key contains the program's unique id, so only a faulty writer repeats one. Keep both programs.
        title = key if key not in parts else f"{key}#{len(parts)}"
        read = partial(read_program, title, program)
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
        pass  # the reader reports the damage
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


ENVIRONMENT, OPTIONS_STAT = "Task Environment", "profile_options"
DEVICE, NO_DEVICES = "/device:", ("/device:CPU", "/device:CUSTOM")
OPTIONS = Plan(ProfileOptions)
MIN_TRACER_LEVEL = 2  # of the host tracer, for allocators to log events; JAX's default

SEE_PLANS = "The compiled programs of the run show the memory that each plans to use."
CPU = NoEventsReason(
    NoEventsCode.CPU_BACKEND,
    "No accelerator is in this profile, and JAX's CPU backend does not log its allocations.",
    "Wrap the loop in tb_memplugin.capture.track() to record JAX's live arrays on any backend. " + SEE_PLANS,
)
TRACER_LEVEL = NoEventsReason(
    NoEventsCode.TRACER_LEVEL,
    f"The host tracer ran at level {{level}}; allocators log events at level {MIN_TRACER_LEVEL} and above.",
    f"Profile again with jax.profiler.ProfileOptions().host_tracer_level = {MIN_TRACER_LEVEL}. " + SEE_PLANS,
)
NO_DEVICE_WORK = NoEventsReason(
    NoEventsCode.NO_DEVICE_WORK,
    "The devices ran nothing during the profile, so they allocated nothing.",
    "Profile some steps of the loop, and wait for their results (jax.block_until_ready) before the profile ends. "
    + SEE_PLANS,
)
NO_ALLOCATOR_EVENTS = NoEventsReason(
    NoEventsCode.NO_ALLOCATOR_EVENTS,
    "No allocator logged an event. Possible reasons: all memory was allocated before the profile started, the "
    "allocator logs no events (XLA_PYTHON_CLIENT_ALLOCATOR=platform), or the host tracer ran below level "
    f"{MIN_TRACER_LEVEL}.",
    f"Profile from the first step, with host_tracer_level {MIN_TRACER_LEVEL} and JAX's default allocator. " + SEE_PLANS,
)


class _TracerLevels(NamedTuple):
    host: int
    device: int


def no_events_reason(planes: Sequence[Plane]) -> NoEventsReason:
    """Return the reason why a profile has no allocator events, from the planes' names and whether they have any events.

    Where several reasons apply, return the one that would remain without the others. Raises ValueError where a plane
    is damaged.
    """
    levels = _tracer_levels(planes)
    devices = [p for p in planes if p.name.startswith(DEVICE) and not p.name.startswith(NO_DEVICES)]
    # With the device tracer off, a profile has no device planes even on a machine with accelerators.
    if not devices and (levels is None or levels.device):
        return CPU
    if levels is not None and levels.host < MIN_TRACER_LEVEL:
        return TRACER_LEVEL._replace(text=TRACER_LEVEL.text.format(level=levels.host))
    if not any(any_event(p.data, p.budget) for p in planes if p.name == HOST_PLANE):
        return TRACER_LEVEL._replace(text=TRACER_LEVEL.text.format(level=0))
    if devices and not any(any_event(p.data, p.budget) for p in devices):
        return NO_DEVICE_WORK
    return NO_ALLOCATOR_EVENTS


def _tracer_levels(planes: Sequence[Plane]) -> _TracerLevels | None:
    """Return the requested tracer levels; None in profiles of older profilers, which lack them, and in damaged ones."""
    for plane in planes:
        if plane.name != ENVIRONMENT:
            continue
        options = plane.metadata["stats"]["bytes_value"]
        for row in plane.rows_of_stat(OPTIONS_STAT):
            if options.length[row]:
                try:
                    columns = scan(plane.data, OPTIONS, options.take(np.array([row])), plane.budget)[""]
                except ValueError:
                    return None
                return _TracerLevels(int(columns["host_tracer_level"][0]), int(columns["device_tracer_level"][0]))
    return None
