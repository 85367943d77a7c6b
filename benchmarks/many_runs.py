"""A server's first page of a logdir of 10,000 runs with 8 hosts each, and TensorBoard's check for data.

    python -m benchmarks.many_runs --runs 10000 --hosts 8

The files are links to the smallest profile of `demo_logdir`, one for each host.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks.cold_server import OURS, Client
from tb_memplugin import logdir

PROFILE = Path(__file__).parents[1] / "demo_logdir/oom/plugins/profile/cpu/localhost.xplane.pb"
MAX_LINKS = 50_000  # to a file; ext4 allows 65,000
ROUNDS = 3


def make(root: Path, runs: int, hosts: int) -> None:
    """Write <root>/run_<number>/plugins/profile/<session>/host-<number>.xplane.pb."""
    for number in range(runs):
        session = root / f"run_{number:05d}/plugins/profile/2026_11_{number % 28 + 1:02d}_12_00_00"
        session.mkdir(parents=True)
        for host in range(hosts):
            original = root.with_name(f"{host}-{number // MAX_LINKS}.xplane.pb")
            if not original.exists():
                shutil.copy(PROFILE, original)
            os.link(original, session / f"host-{host}.xplane.pb")


def first_page(client: Client) -> int:
    """Ask for what the page shows first: the runs, candidates of fits, and the overview of the newest run."""
    run = str(client.json("api/runs")["runs"][0]["name"])
    paths = {"": {}, "api/fit": {}, "api/recordings": {"run": run}, "api/overview_figures": {"run": run}}
    return sum(len(client.get(path, **query)) for path, query in paths.items())


def runs_again(client: Client) -> float:
    client.get("api/runs")
    began = time.perf_counter()
    client.get("api/runs")
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--hosts", type=int, default=8)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "logs"
        make(root, arguments.runs, arguments.hosts)
        costs = [OURS.measure(root, first_page) for _ in range(ROUNDS)]
        print(f"first page       {median(cost.answer for cost in costs):6.2f} s after the server listens")
        print(f"whole process    {median(cost.whole for cost in costs):6.2f} s, {costs[0].memory / 1e6:.0f} MB")
        with OURS.running(root) as (client, _):
            print(f"runs again       {median(runs_again(client) for _ in range(ROUNDS)):6.2f} s")
        began = time.perf_counter()
        assert logdir.has_runs(str(root))
        print(f"check for data   {time.perf_counter() - began:9.5f} s")


if __name__ == "__main__":
    main()
