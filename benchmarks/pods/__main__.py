"""The profiles of a pod with known truth, in a logdir.

    python -m benchmarks.pods FOLDER --hosts 1000 --megabytes 5 --devices 4
    python -m benchmarks.pods FOLDER --hosts 64 --outliers 1 --leaks 1 --missing 3 --damaged 3 --skew 9
    python -m benchmarks.pods FOLDER --hosts 2 --days 14
    python -m benchmarks.pods FOLDER --hosts 64 --ranks .prof

writes FOLDER/<run>/plugins/profile/<session>/<host>.xplane.pb for each host, or a file for each rank, and the truth
beside the logdir as FOLDER.truth.json. Equal arguments give equal bytes. Without options for faults, a pod is healthy.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, fields
from pathlib import Path

from benchmarks.pods.pod import Pod, write_trend
from benchmarks.pods.ranks import FORMATS, write_ranks
from benchmarks.pods.truth import Capture, Faults


def write(arguments: argparse.Namespace) -> tuple[list[Capture], dict[str, str | int]]:
    """Write what the arguments ask for. Return its captures, and the change of a trend, else an empty dictionary."""
    faults = Faults(**{field.name: getattr(arguments, field.name) for field in fields(Faults)})
    pod = Pod(arguments.hosts, arguments.devices, arguments.megabytes, arguments.seed, faults, arguments.skew)
    if arguments.days:
        trend = write_trend(pod, arguments.logdir, arguments.days)
        return trend.days, {"run": trend.changed, "source_line": trend.source_line, "bytes": trend.bytes}
    if arguments.ranks:
        return [write_ranks(pod, arguments.logdir, arguments.ranks)], {}
    return [pod.write(arguments.logdir)], {}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.pods", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("logdir", type=Path, metavar="FOLDER")
    parser.add_argument("--hosts", type=int, default=8)
    parser.add_argument("--devices", type=int, default=4, help="of each host")
    parser.add_argument("--megabytes", type=float, default=5, help="of each host's file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--skew", type=int, default=0, metavar="SECONDS", help="between the clocks of hosts")
    parser.add_argument("--days", type=int, default=0, help="write a run a day; one day's change raises the peak")
    parser.add_argument("--ranks", choices=FORMATS, help="write a small file for each rank instead of profiles")
    for field in fields(Faults):
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=int, default=0, metavar="N")
    arguments = parser.parse_args()
    captures, change = write(arguments)
    truth = {"captures": [asdict(capture) for capture in captures], "change": change}
    path = arguments.logdir.with_name(f"{arguments.logdir.name}.truth.json")
    path.write_text(json.dumps(truth, indent=1) + "\n")
    print(path)


if __name__ == "__main__":
    main()
