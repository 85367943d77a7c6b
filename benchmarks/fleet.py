"""Time and memory of `tb-memplugin fleet` on generated pods, beside XProf and xprof-rs on eight hosts.

    python -m benchmarks.fleet [--pods 1000x5 40x60] [--rounds 3] [--folder FOLDER]

Each look is a new process. First looks start without a cache, with one worker and with two in turns. `memory` is the
largest sum of all processes' memory, with shared pages counted once; `read` is the sum of the bytes that the processes
read, of Python's own modules too. Pods have planted faults, and a fault that a look does not name is printed. Pods are
deleted at the end, unless they are in a `--folder`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks.cold_server import XPROF, XPROF_RS, Client, Server
from benchmarks.profiles import made
from benchmarks.timing import BIN, ENVIRONMENT

CACHE = "TB_MEMPLUGIN_FLEET_CACHE"
FEW = 8  # hosts for other tools
LEAST = 2  # hosts of a look that starts the processes and reads next to nothing
SAMPLE_SECONDS = 0.1
SKEW_SECONDS = 9


class Look(NamedTuple):
    """One look at a pod."""

    seconds: float
    processor: float  # seconds of all processes
    memory: int  # bytes
    read: int  # bytes
    text: str


class Watch:
    """The largest memory of a process and its children together, and the bytes that they read, by sampling."""

    def __init__(self, process: int) -> None:
        self.memory = self.read = 0
        self._process, self._ends = process, threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ends.wait(SAMPLE_SECONDS):
            memory = read = 0
            for process in tree(self._process):
                with suppress(OSError, IndexError):  # it has ended; its parent has what it read
                    memory += figure(Path(f"/proc/{process}/smaps_rollup"), "Pss:") * 1024
                    read += figure(Path(f"/proc/{process}/io"), "rchar:")
            self.memory, self.read = max(self.memory, memory), max(self.read, read)


def tree(process: int) -> list[int]:
    """Return a process and its descendants."""
    found = [process]
    for parent in found:
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            with suppress(OSError):
                found += map(int, children.read_text().split())
    return found


def figure(path: Path, name: str) -> int:
    return int(path.read_text().partition(name)[2].split()[0])


def look(logdir: Path, cache: Path, jobs: int) -> Look:
    """Run the command, and wait for its end. Raises SystemExit where it fails."""
    command = [str(BIN / "tb-memplugin"), "fleet", str(logdir), "--jobs", str(jobs)]
    environment = ENVIRONMENT | {CACHE: str(cache)}
    with tempfile.TemporaryFile("w+") as output:
        start, used = time.perf_counter(), processor_seconds()
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
        with Watch(process.pid) as watch:
            code = process.wait()
            seconds = time.perf_counter() - start
        output.seek(0)
        text = output.read()
    if code:
        raise SystemExit(f"{' '.join(command)}\nfailed:\n{text[-2000:]}")
    return Look(seconds, processor_seconds() - used, watch.memory, watch.read, text)


def processor_seconds() -> float:
    """Return the processor time of all processes that have ended below this one."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def write_pod(hosts: int, megabytes: int, logdir: Path) -> None:
    """Write a pod with faults, if it has hosts enough, and its truth in a file of the logdir's name."""
    from benchmarks.pods.pod import Pod
    from benchmarks.pods.truth import HEALTHY, Faults

    faults = Faults(outliers=2, leaks=1, missing=3, damaged=3, other_programs=1) if hosts > FEW else HEALTHY
    capture = Pod(hosts, megabytes=megabytes, faults=faults, skew_seconds=SKEW_SECONDS * (hosts > FEW)).write(logdir)
    planted = {planted.host for planted in (*capture.outliers, *capture.leaks)}
    names = [*planted, *capture.missing, *capture.damaged, *capture.other_programs]
    truth = {"names": sorted(names), "devices": len(capture.devices), "hosts": hosts - len(capture.missing)}
    truth_of(logdir).write_text(json.dumps(truth))


def truth_of(logdir: Path) -> Path:
    return logdir.with_name(f"{logdir.name.removesuffix('.unfinished')}.truth.json")


def measure(hosts: int, megabytes: int, rounds: int, folder: Path) -> None:
    """Print a row for first looks with one worker and with two, and one for second looks."""
    logdir = made(partial(write_pod, hosts, megabytes), folder)
    truth = json.loads(truth_of(logdir).read_text())
    size = sum(path.stat().st_size for path in logdir.rglob("*.xplane.pb"))
    cache = folder / "cache"
    least = made(partial(write_pod, LEAST, 1), folder)
    starts: list[float] = []
    looks: dict[str, list[Look]] = {"first, 1 worker": [], "first, 2 workers": [], "second": []}
    for _ in range(rounds):
        shutil.rmtree(cache, ignore_errors=True)
        starts.append(look(least, cache, 2).seconds)
        for jobs, name in ((1, "first, 1 worker"), (2, "first, 2 workers")):
            shutil.rmtree(cache, ignore_errors=True)
            looks[name].append(look(logdir, cache, jobs))
        looks["second"].append(look(logdir, cache, 2))
    for name, each in looks.items():
        if unnamed := [host for host in truth["names"] if not is_named(host, each[0].text)]:
            print(f"{name}: not named: {', '.join(unnamed)}")
        row(f"{hosts:,} hosts x {megabytes} MB", name, each, truth["hosts"], size)
    one, two = (median(one.seconds for one in looks[name]) for name in list(looks)[:2])
    start = median(starts)
    print(
        f"two workers are {one / two:.2f} times as fast as one, and {(one - start) / (two - start):.2f} times without "
        f"the start, a first look at {LEAST} hosts x 1 MB: {start:.2f} s"
    )


def is_named(host: str, text: str) -> bool:
    """Return whether a text has a host's name, or the number alone, as lists of missing hosts have."""
    number = host.rpartition("-")[2]
    return host in text or re.search(rf"missing:.*\b{number}\b", text) is not None


def row(pod: str, name: str, looks: list[Look], hosts: int, size: int) -> None:
    seconds = [each.seconds for each in looks]
    middle, memory, read = median(seconds), max(each.memory for each in looks), max(each.read for each in looks)
    print(
        f"| {pod} | {name} | {middle:.2f} s [{min(seconds):.2f}, {max(seconds):.2f}] "
        f"| {median(each.processor for each in looks):.1f} s | {hosts / middle:,.1f} "
        f"| {size / middle / 1e6:,.0f} MB/s | {memory / 1e6:,.0f} MB | {read / 1e6:,.0f} of {size / 1e6:,.0f} MB |",
        flush=True,
    )


def beside(megabytes: int, folder: Path) -> None:
    """Print what other tools answer about eight hosts, one request for each, and how our command does."""
    original = made(partial(write_pod, FEW, megabytes), folder)
    for name, server in (("XProf", XPROF), ("xprof-rs", XPROF_RS)):
        copy = folder / "copy"
        shutil.copytree(original, copy, copy_function=os.link)  # they write into the logdir
        try:
            print(f"| {FEW} hosts x {megabytes} MB | {name} | {asked(server, copy)} |", flush=True)
        finally:
            shutil.rmtree(copy)
    measure(FEW, megabytes, 3, folder)


def asked(server: Server, logdir: Path) -> str:
    """Ask a server for the memory of every host, and of all hosts at once. Return the cells of its row."""
    with server.running(logdir) as (client, process), Watch(process) as watch:
        start = time.perf_counter()
        run = str(client.json("data/plugin/profile/runs")[0])
        client.get("data/plugin/profile/run_tools", run=run)
        ask = partial(client.json, "data/plugin/profile/data", run=run, tag="memory_profile")
        hosts = [
            str(one["hostname"]) for one in client.json("data/plugin/profile/hosts", run=run, tag="memory_profile")
        ]
        devices = sum(len(ask(host=host)["memoryProfilePerAllocator"]) for host in hosts)
        seconds = time.perf_counter() - start
        together = all_hosts(client, ask)
    return f"{seconds:.2f} s | {watch.memory / 1e6:,.0f} MB | {devices} devices in {len(hosts)} answers; {together}"


def all_hosts(client: Client, ask: Callable[..., Any]) -> str:
    """Ask for all hosts at once, which XProf's page offers for other tools."""
    try:
        return f"{len(ask(host='ALL_HOSTS')['memoryProfilePerAllocator'])} devices for all hosts at once"
    except (Exception, SystemExit) as error:
        return f"all hosts at once: {str(error).rpartition(': ')[2][:60]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", nargs="+", default=["1000x5", "40x60"], help="hosts x megabytes of a host")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="keep the pods in this folder, and use those that are there")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        titles = ("pod", "look", "seconds", "processor time", "hosts/s", "throughput", "memory", "read")
        print(f"| {' | '.join(titles)} |\n{'|---' * len(titles)}|")
        for pod in arguments.pods:
            hosts, megabytes = pod.split("x")
            measure(int(hosts), int(megabytes), arguments.rounds, folder)
        beside(60, folder)


if __name__ == "__main__":
    main()
