"""Time of `tb-memplugin summary demo_logdir` with the start of the process, compared with an empty Python and XProf.

    python -m benchmarks.summary_start [--rounds 10]

XProf's closest command, `xprof get_peak_allocations`, covers one run: here the largest of the three with compiled
programs. Commands use copies, because XProf writes to the logdir.
"""

import argparse
import shutil
import sysconfig
import tempfile
from pathlib import Path

from benchmarks.timing import python, ratio, run_alternately, spread

EMPTY = "python -c pass"
OURS = "tb-memplugin summary, 3 runs"
XPROF = "xprof get_peak_allocations --bypass_cache, 1 run"
LOGDIR = Path(__file__).parent.parent / "demo_logdir"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    arguments = parser.parse_args()
    scripts = Path(sysconfig.get_path("scripts"))
    with tempfile.TemporaryDirectory() as folder:
        programs = shutil.ignore_patterns("leak*")
        ours, theirs = (shutil.copytree(LOGDIR, Path(folder) / name, ignore=programs) for name in ("ours", "theirs"))
        xprof = (str(scripts / "xprof"), "get_peak_allocations", "cpu", f"--logdir={theirs / 'train_step'}")
        commands = {
            EMPTY: python("-c", "pass"),
            OURS: [str(scripts / "tb-memplugin"), "summary", str(ours)],
            XPROF: [*xprof, "--bypass_cache=True"],
        }
        run_alternately(commands, 1)  # fills the file cache, and lets XProf extract its files from the profile
        samples = run_alternately(commands, arguments.rounds)
    wall = {name: [sample.wall_seconds for sample in runs] for name, runs in samples.items()}
    for name, seconds in wall.items():
        print(f"  {name:52}{spread(seconds)}")
    print(f"  XProf takes {ratio(wall[OURS], wall[XPROF]):.2f} times as long as tb-memplugin")


if __name__ == "__main__":
    main()
