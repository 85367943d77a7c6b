"""Why a host's profile holds no allocator events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tb_memplugin.native.protobuf.messages import Plan, scan
from tb_memplugin.native.text.spans import Spans
from tb_memplugin.native.xplane.all_events import any_event
from tb_memplugin.protos.xplane_pb2 import ProfileOptions
from tb_memplugin.readers.common.part import Reason
from tb_memplugin.readers.xplane.allocator import events as allocator_events
from tb_memplugin.readers.xplane.planes import Plane

ENVIRONMENT, OPTIONS_STAT = "Task Environment", "profile_options"
DEVICE, NO_DEVICES = "/device:", ("/device:CPU", "/device:CUSTOM")
OPTIONS = Plan(ProfileOptions.DESCRIPTOR)
TOLD_FROM = 2  # the host tracer's level from which allocators tell what they do; it is JAX's default

PLANNED = "The Memory Viewer shows what each program plans to use."
CPU = Reason(
    "cpu_backend",
    "No accelerator is in this profile, and JAX's CPU backend does not tell what it allocates.",
    "Put tb_memplugin.capture.track() around the loop to record JAX's live arrays on any backend. " + PLANNED,
)
TRACER_LEVEL = Reason(
    "tracer_level",
    f"The host tracer ran at level {{level}}, and allocators tell what they do from level {TOLD_FROM} on.",
    f"Profile again with jax.profiler.ProfileOptions().host_tracer_level = {TOLD_FROM}. " + PLANNED,
)
NO_DEVICE_WORK = Reason(
    "no_device_work",
    "The devices did nothing while the profile was taken, so nothing was allocated on them.",
    "Profile some steps of the loop, and wait for their results (jax.block_until_ready) before the profile ends. "
    + PLANNED,
)
NOTHING_TOLD = Reason(
    "nothing_told",
    "No allocator told of anything: all memory was allocated before the profile began, the allocator is one that does "
    f"not tell (XLA_PYTHON_CLIENT_ALLOCATOR=platform), or the host tracer's level was below {TOLD_FROM}.",
    f"Profile from the first step on, with host_tracer_level {TOLD_FROM} and JAX's default allocator. " + PLANNED,
)


class _Levels(NamedTuple):
    host: int
    device: int


def reason(planes: Sequence[Plane]) -> Reason:
    """For a profile without allocator events. Looks at names, and at no more of the events than whether there are any.

    Where several reasons apply it is the one that would remain without the others. ValueError where a plane is damaged.
    """
    levels = _levels(planes)
    devices = [p for p in planes if p.name.startswith(DEVICE) and not p.name.startswith(NO_DEVICES)]
    # Without the device tracer no device is in a profile, also where there is one.
    if not devices and (levels is None or levels.device):
        return CPU
    if levels is not None and levels.host < TOLD_FROM:
        return TRACER_LEVEL._replace(text=TRACER_LEVEL.text.format(level=levels.host))
    if not any(any_event(p.data) for p in planes if p.name == allocator_events.PLANE):
        return TRACER_LEVEL._replace(text=TRACER_LEVEL.text.format(level=0))
    if devices and not any(any_event(p.data) for p in devices):
        return NO_DEVICE_WORK
    return NOTHING_TOLD


def _levels(planes: Sequence[Plane]) -> _Levels | None:
    """What the profiler was asked for; older ones do not tell, and damaged ones do not either."""
    for plane in planes:
        if plane.name == ENVIRONMENT:
            stats = plane.metadata["stats"]
            for row in np.flatnonzero(stats["bytes_value"].length).tolist():
                if plane.stat_names.get(int(stats["metadata_id"][row])) == OPTIONS_STAT:
                    return _read(plane.data, stats["bytes_value"].take(np.array([row])))
    return None


def _read(data: memoryview, options: Spans) -> _Levels | None:
    try:
        told = scan(data, OPTIONS, options)[""]
    except ValueError:
        return None
    return _Levels(int(told["host_tracer_level"][0]), int(told["device_tracer_level"][0]))
