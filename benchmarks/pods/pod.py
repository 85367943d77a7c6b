"""Pods: a file for each host, in the sessions that the hosts' clocks name."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from benchmarks.pods.generated import BUFFERS, Generated
from benchmarks.pods.other_planes import task_environment
from benchmarks.pods.tasks import Extra
from benchmarks.pods.truth import DAMAGES, HEALTHY, LEAK, OUTLIER, Capture, Device, Faults, Planted
from benchmarks.pods.wire import HOSTNAMES, field

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
