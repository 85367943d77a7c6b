"""Pods: a file for each host, in the sessions that the hosts' clocks name, and daily runs of one job."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property
from pathlib import Path
from random import Random
from typing import NamedTuple

from benchmarks.pods.allocator import CAPACITY, Loop, run
from benchmarks.pods.host_plane import HostPlane
from benchmarks.pods.other_planes import device_plane, program, task_environment, timeline
from benchmarks.pods.tasks import GIB, MIB, Call, Extra, Lifetime
from benchmarks.pods.truth import DAMAGES, HEALTHY, LEAK, OUTLIER, Capture, Device, Faults, Planted
from benchmarks.pods.wire import HOSTNAMES, PLANES, field, message

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


START = datetime(2026, 11, 23, 4, 7, 1, tzinfo=UTC)
SESSION = "%Y_%m_%d_%H_%M_%S"  # the name of a session's folder


@dataclass(frozen=True)
class Pod:
    """A pod to write."""

    hosts: int
    devices: int = 4  # of each host
    megabytes: float = 5  # of each file; the least is about 0.5
    seed: int = 0
    faults: Faults = HEALTHY
    skew_seconds: int = 0  # between the clocks of hosts
    name: str = "t1v-n-5a3c91f2-w-{}"  # of a host; Cloud TPU numbers its hosts so
    extras: tuple[Extra, ...] = ()  # of all devices
    buffers: int = BUFFERS  # of the program

    def write(self, logdir: Path, run: str = "run42", start: datetime = START) -> Capture:
        """Write `<logdir>/<run>/plugins/profile/<session>/<host>.xplane.pb` for each host, and return the truth."""
        source = Generated(self.devices, self.megabytes, self.seed, self.extras, self.buffers)
        drawn, found, sessions = Drawn(self, source.memories), list[Device](), dict[str, list[str]]()
        for number in range(self.hosts):
            if number in drawn.missing:
                continue
            host, draw = self.name.format(number), Random(f"{self.seed} {start} {number}")
            began = int(start.timestamp()) + draw.randint(0, self.skew_seconds)
            session = datetime.fromtimestamp(began, UTC).strftime(SESSION)
            sessions.setdefault(session, []).append(host)
            made = source.host(draw, drawn.extras(number), other_program=number in drawn.other_programs)
            pieces = [*made.pieces, task_environment(began), field(HOSTNAMES, host.encode())]
            path = logdir / run / "plugins" / "profile" / session / f"{host}.xplane.pb"
            path.parent.mkdir(parents=True, exist_ok=True)
            damage = drawn.damaged.get(number, "")
            with path.open("wb") as file:
                file.writelines(damaged(pieces, damage))
            os.utime(path, (began, began))
            if not damage:
                found += map(Device, [host] * len(made.peaks), source.memories, made.peaks, made.capacities)
        return drawn.capture(run, dict(sorted(sessions.items())), found)


class Drawn:
    """The hosts that have the faults of a pod, each at most one."""

    def __init__(self, pod: Pod, memories: Sequence[str]) -> None:
        """`memories`: the devices of each host."""
        self.pod, self.memories, faults = pod, memories, pod.faults
        rng = Random(f"{pod.seed} faults")
        inner = list(range(1, pod.hosts - 1))
        self.missing = set(rng.sample(inner, faults.missing))
        rest = [number for number in range(pod.hosts) if number not in self.missing]
        rng.shuffle(rest)
        if len(rest) < faults.damaged + faults.leaks + faults.other_programs + faults.outliers:
            raise ValueError(f"{pod.hosts} hosts are too few for these faults: each host has at most one")
        self.damaged = {rest.pop(): DAMAGES[n % len(DAMAGES)] for n in range(faults.damaged)}
        self.leaks = {rest.pop() for _ in range(faults.leaks)}
        self.other_programs = {rest.pop() for _ in range(faults.other_programs)}
        self.outliers = {rest.pop(): rng.randrange(len(memories)) for _ in range(faults.outliers)}

    def extras(self, number: int) -> list[tuple[Extra, ...]]:
        """Return what each device of a host allocates beside the loop."""
        if number in self.leaks:
            return [(LEAK,)] * len(self.memories)
        return [(OUTLIER,) if self.outliers.get(number) == device else () for device in range(len(self.memories))]

    def capture(self, run: str, sessions: dict[str, list[str]], devices: list[Device]) -> Capture:
        names = [self.pod.name.format(number) for number in range(self.pod.hosts)]
        return Capture(
            run=run,
            sessions=sessions,
            devices=devices,
            programs=1 + bool(self.other_programs),
            outliers=[self._planted(OUTLIER, host, device) for host, device in sorted(self.outliers.items())],
            leaks=[
                self._planted(LEAK, host, device) for host in sorted(self.leaks) for device in range(len(self.memories))
            ],
            missing=[names[host] for host in sorted(self.missing)],
            damaged={names[host]: damage for host, damage in sorted(self.damaged.items())},
            other_programs=[names[host] for host in sorted(self.other_programs)],
        )

    def _planted(self, extra: Extra, host: int, device: int) -> Planted:
        names = self.pod.name.format(host), self.memories[device]
        return Planted(*names, extra.call.source_line, extra.call.function, extra.bytes)


def damaged(pieces: list[bytes], damage: str) -> list[bytes]:
    """Return a file after damage of a kind, or without change where the kind is empty."""
    if not damage:
        return pieces
    whole = b"".join(pieces)
    if damage == "truncated":
        return [whole[: len(whole) * 3 // 5]]
    return [Random(len(whole)).randbytes(len(whole) // 5)] if damage == "garbage" else []


CHANGE = Extra(Call("model.py", 112, "attention", "attention"), 3 * GIB // 2, Lifetime.STEP)
CHANGED_BUFFERS = 600  # of the program after the change, which is also larger


class Trend(NamedTuple):
    """The days in order, one capture each."""

    days: list[Capture]
    changed: str  # the run of the first day with the change
    source_line: str
    bytes: int


def write_trend(pod: Pod, logdir: Path, days: int) -> Trend:
    """Write `<logdir>/<date>/plugins/profile/<session>/<host>.xplane.pb` for each day up to START.

    The change comes after two thirds of the days.
    """
    after = replace(pod, extras=(*pod.extras, CHANGE), buffers=CHANGED_BUFFERS)
    first = max(days * 2 // 3, 1)
    captures = []
    for day in range(days):
        start = START - timedelta(days=days - 1 - day)
        captures.append((pod if day < first else after).write(logdir, start.strftime("%Y-%m-%d"), start))
    return Trend(captures, captures[first].run, CHANGE.call.source_line, CHANGE.bytes)
