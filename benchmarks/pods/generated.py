"""Hosts of a generated training job: what they share is made once, and each file is put together from pieces."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property
from random import Random
from typing import NamedTuple

from benchmarks.pods.allocator import CAPACITY, Loop, run
from benchmarks.pods.host_plane import HostPlane
from benchmarks.pods.other_planes import device_plane, program, timeline
from benchmarks.pods.tasks import MIB, Extra
from benchmarks.pods.truth import LEAK, OUTLIER
from benchmarks.pods.wire import PLANES, message

BUFFERS, OTHER_BUFFERS = 300, 310  # of the programs; they take the same memory
STACK_ROOM = 16 * MIB  # beside the program's temporaries, as on a TPU v6e
VARIANTS = 48  # of each device: enough that two hosts seldom have the same figures
REAL_THREADS_BYTES = 350_000


class Host(NamedTuple):
    """A host's planes in pieces, and the figures of its devices in bytes."""

    pieces: list[bytes]
    peaks: list[int]
    capacities: list[int]


class Generated:
    """A source of hosts. `extras`: what all devices allocate beside the usual loop, as after a change of code."""

    def __init__(
        self, devices: int, megabytes: float, seed: int, extras: tuple[Extra, ...] = (), buffers: int = BUFFERS
    ) -> None:
        self.memories = [f"TPU core {device}" for device in range(devices)]
        self._megabytes, self._seed, self._extras = megabytes, seed, extras
        self._program, temporaries = program(buffers)
        self._other_program, _ = program(OTHER_BUFFERS)
        self._stack = temporaries + STACK_ROOM
        real_threads = megabytes * 1e6 - len(self._program) > 4 * REAL_THREADS_BYTES
        self._plane = HostPlane((OUTLIER, LEAK, *extras), real_threads=real_threads)
        self._device = cache(self._new_device)

    def host(self, draw: Random, extras: Sequence[tuple[Extra, ...]], *, other_program: bool) -> Host:
        """Return a host whose planes are in the order of a real one. `extras`: of each device."""
        devices = [self._device(device, draw.randrange(VARIANTS), extra) for device, extra in enumerate(extras)]
        pieces = [
            *(piece for device in range(len(devices)) for piece in device_plane(device, self._timeline)),
            *message(PLANES, [self._other_program if other_program else self._program]),
            *message(PLANES, [self._common, *(threads for _, threads in devices)]),
        ]
        return Host(pieces, [loop.peak_bytes for loop, _ in devices], [CAPACITY] * len(devices))

    def _new_device(self, device: int, variant: int, extras: tuple[Extra, ...]) -> tuple[Loop, bytes]:
        loop = run(Random(f"{self._seed} {device} {variant}"), self._stack, (*self._extras, *extras))
        return loop, self._plane.device(device, loop)

    @cached_property
    def _common(self) -> bytes:
        return self._plane.common(self._device(0, 0, ())[0].tasks)

    @cached_property
    def _timeline(self) -> list[bytes]:
        """The contents of a device's timeline, which fills the file."""
        devices = len(self.memories)
        threads = sum(len(self._device(device, 0, ())[1]) for device in range(devices))
        used = len(self._program) + len(self._common) + threads
        return timeline(int(self._megabytes * 1e6 - used) // devices, self._seed)
