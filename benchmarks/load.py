"""150 clients on mixed routes of each host, while runs are written and a file of 100 MB is read again and again.

Prints the rate, the latency and the memory. The clients are in this process, the server in another one.
"""

from __future__ import annotations

import argparse
import asyncio
from contextlib import ExitStack

from benchmarks.load_client import run
from benchmarks.served import APIS, growing, rewritten, served, watched

LARGE_BUFFERS = 160_000  # 100 MB
RUNS = ("train_step/cpu", "v5e_train_step", "leak/cpu")


def measure(host: str, clients: int, seconds: float, large_buffers: int, pause: float) -> None:
    with ExitStack() as stack:
        server = stack.enter_context(served(host, large_buffers))
        paths = [path for name in RUNS for path in server.paths(name)]
        large: list[str] = []
        if large_buffers:
            [file] = (server.logdir / "large").rglob("*.xplane.pb")
            stack.enter_context(rewritten(file, 10))
            large = [path for path in server.paths("large/cpu") if "overview" in path or "memory_viewer" in path]
        stack.enter_context(growing(server.logdir, 1, 20))
        figures = stack.enter_context(watched(server.pid))
        load = asyncio.run(run(server.url, [*paths * 4, *large], clients, seconds, pause))
    wait = max((worst, path) for path, worst in load.worst.items() if path not in large)
    of_large = max([load.worst.get(path, 0) for path in large], default=0)
    memory = [f"{megabytes:.0f}" for megabytes in figures.megabytes[:: max(int(seconds / 6), 1)]]
    cost = 1e3 * figures.processor_seconds / max(len(load.seconds), 1)
    print(f"{host}: {len(load.seconds) / seconds:.0f} requests/s, of which each took {cost:.1f} ms of processor time")
    print(f"  p50 {1e3 * load.quantile(0.5):.0f} ms, p99 {1e3 * load.quantile(0.99):.0f} ms")
    print(f"  worst {wait[0]:.2f} s ({wait[1][:100]}), of the large file {of_large:.2f} s")
    print(f"  answers {dict(load.statuses)}, memory {', '.join(memory)} MB", flush=True)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", nargs="+", default=list(APIS), choices=list(APIS))
    parser.add_argument("--clients", type=int, default=150)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--large-buffers", type=int, default=LARGE_BUFFERS)
    parser.add_argument("--pause", type=float, default=0, help="seconds between an answer and the next request")
    options = parser.parse_args(arguments)
    for host in options.hosts:
        measure(host, options.clients, options.seconds, options.large_buffers, options.pause)


if __name__ == "__main__":
    main()
