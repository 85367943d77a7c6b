"""Compile a step for accelerators that are not here: does it fit, and what is the largest batch?

FILE.py:FUNCTION is a function of `devices` and knobs that returns a jitted function and the shapes of its arguments.
Every figure is that of a compiled program.

example:
  tb-memplugin fit fit_gpt.py:step --on v5e:4x4 --vary batch --vary remat=none,full --to /tmp/xprof
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tb_memplugin.sizes import parse_size


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("step", metavar="FILE.py:FUNCTION")
    parser.add_argument("--on", metavar="TARGET", action="append", required=True, help="such as v5e:4x4, h100:8, cpu:8")
    parser.add_argument("--vary", metavar="KNOB[=VALUES]", action="append", default=[])
    parser.add_argument("--set", metavar="KNOB=VALUE", action="append", default=[], dest="fixed")
    parser.add_argument("--budget", metavar="SIZE", type=parse_size, help="in place of the chip's limit")
    parser.add_argument("--to", metavar="LOGDIR", help="keep each candidate there, as a run")
    parser.add_argument("--jobs", type=int, help="compiles at a time (default: half of the cores)")


def run(arguments: argparse.Namespace) -> int:
    from tb_memplugin.fit.compiler import open_compiler
    from tb_memplugin.fit.knobs import parse_fixed, parse_varied
    from tb_memplugin.fit.step_file import defaults_of
    from tb_memplugin.fit.sweep import Sweep
    from tb_memplugin.fit.targets import parse_target, slices
    from tb_memplugin.model.fit import Outcome
    from tb_memplugin.views.terminal.fit import table

    def done(outcome: Outcome) -> None:
        print(f"{outcome.candidate.target} {dict(outcome.candidate.knobs)} {outcome.seconds:.1f} s", file=sys.stderr)

    defaults = defaults_of(arguments.step)
    targets = [parse_target(text) or slices(text)[0] for text in arguments.on]
    with (
        tempfile.TemporaryDirectory(prefix="tb_memplugin_") as temporary,
        open_compiler(Path(arguments.to or temporary), jobs=arguments.jobs) as compiler,
    ):
        sweep = Sweep(
            arguments.step,
            targets,
            tuple(map(parse_fixed, arguments.fixed)),
            [parse_varied(text, defaults.get(text.partition("=")[0])) for text in arguments.vary],
            compiler,
            compiler.logdir,
            arguments.budget,
            done,
        )
        found = sweep.run(64)
    print("\n".join(table(found)))
    return 0 if all(one.largest for one in found) else 1
