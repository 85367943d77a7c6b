"""Reasons why a profile has no allocator events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tb_memplugin.model.caveats import NoEventsCode
from tb_memplugin.native.protobuf.messages import Plan, scan
from tb_memplugin.native.text.spans import Spans
from tb_memplugin.native.xplane.all_events import any_event
from tb_memplugin.protos.xplane_fields import ProfileOptions
from tb_memplugin.readers.common.part import NoEventsReason
from tb_memplugin.readers.xplane.planes import HOST_PLANE, Plane

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
    """Return the reason why a profile has no allocator events, from names and from whether planes have events at all.

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
        if plane.name == ENVIRONMENT:
            stats = plane.metadata["stats"]
            for row in plane.rows_of_stat(OPTIONS_STAT):
                if stats["bytes_value"].length[row]:
                    return _parse_levels(plane, stats["bytes_value"].take(np.array([row])))
    return None


def _parse_levels(plane: Plane, options: Spans) -> _TracerLevels | None:
    try:
        columns = scan(plane.data, OPTIONS, options, plane.budget)[""]
    except ValueError:
        return None
    return _TracerLevels(int(columns["host_tracer_level"][0]), int(columns["device_tracer_level"][0]))
