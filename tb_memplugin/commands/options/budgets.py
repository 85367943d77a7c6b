"""Options of the commands that check budgets, compile for other chips, and read many hosts."""

from __future__ import annotations

import argparse

from tb_memplugin.commands.options.shared import (
    MARKDOWN,
    PATH,
    TABLES,
    Parser,
    json_options,
    limit_options,
    output_options,
    path_option,
    pattern_option,
    repeated_option,
    target_options,
)
from tb_memplugin.model.kinds import FAIL_ON, PAUSE_SECONDS, NumberedFiles, TrendBy
from tb_memplugin.sizes import parse_size


def check(parser: argparse.ArgumentParser) -> None:
    """Check that recordings fit a memory budget, that the devices of many hosts do, or that a step fits a chip.

    A program must fit with the memory that it reserves, which compilers compare with their limit; any other recording
    with its peak. With --baseline, peak, reserved memory and roles are compared with a file that `tb-memplugin
    baseline` wrote, and the causes of growth are named. With --fleet, --max-spread, --expect or --fail-on the devices
    of the newest capture are checked, read as `tb-memplugin fleet` reads them, with how far their peaks are apart; with
    --all-captures those of every capture. A capture with at most half of the hosts of the one before is not taken as
    the newest. With --fit a step is compiled first, as `tb-memplugin fit` does; the budget is then the chip's limit,
    unless --max-peak is given. Exit code 0 means that all of them fit, 1 that at least one does not.

    examples:
      tb-memplugin check /tmp/xprof --max-peak 70GiB --recording jit_train_step
      tb-memplugin check gs://bucket/run42 --max-peak 30GiB --max-spread 5%
      tb-memplugin check /tmp/xprof --baseline memory.json --tolerance 2%
      tb-memplugin check --fit fit_gpt.py:step --on v5e:4x4 --set batch=48
    """
    parser.add_argument("path", metavar="PATH", nargs="?", help=PATH)
    parser.add_argument(
        "--max-peak",
        metavar="SIZE",
        help="the budget, such as 70GiB (1024**3), 70GB (1000**3), or a number of bytes",
    )
    pattern_option(parser)
    parser.add_argument(
        "--max-spread",
        metavar="SHARE",
        help="largest minus smallest peak of a capture's devices, relative to their median, such as 5%%",
    )
    parser.add_argument(
        "--fleet", action="store_true", help="check the devices of the newest capture (as --max-spread)"
    )
    parser.add_argument("--expect", metavar="N", type=int, help="how many hosts each capture must have")
    parser.add_argument(
        "--fail-on",
        metavar="KINDS",
        default="",
        help=f"also exit with 1 for these, separated by commas: {', '.join(FAIL_ON)}",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--capture", metavar="NAME", help="a capture whose name contains this, in place of the newest")
    which.add_argument("--all-captures", action="store_true", help="every capture, in place of the newest")
    scan_options(parser)
    json_options(parser)
    against = parser.add_argument_group("a baseline, in place of --max-peak")
    against.add_argument("--baseline", metavar="FILE", help="a file that `tb-memplugin baseline` has written")
    tolerance_option(against, "what the baseline contains")
    against.add_argument(
        "--no-roles", dest="with_roles", action="store_false", help="check only the peak and reserved memory"
    )
    against.add_argument("--markdown", action="store_true", help=MARKDOWN)
    against.add_argument("--max-bytes", metavar="N", type=int, help="print whole lines of at most so many bytes")
    compiling = parser.add_argument_group("a step to compile, in place of PATH")
    compiling.add_argument("--fit", metavar="FILE.py:FUNCTION", dest="step", help="see `tb-memplugin fit --help`")
    compiling_options(compiling)


def baseline(parser: argparse.ArgumentParser) -> None:
    """Write the memory of programs to a file, for `tb-memplugin check --baseline`.

    The file is JSON for a repository: peak, reserved memory and roles of each program, how much these may grow, its
    arguments, and its largest arrays at the peak, under names that stay the same between compiles. It contains no
    times, hosts or folders.

    examples:
      tb-memplugin baseline /tmp/xprof --write memory.json
      tb-memplugin baseline /tmp/xprof --write memory.json --tolerance 100MiB
      tb-memplugin check /tmp/xprof --baseline memory.json
    """
    path_option(parser)
    parser.add_argument(
        "--write", metavar="FILE", help="the file, which is replaced if it is a baseline (default: print it)"
    )
    tolerance_option(parser, "that of the file which is replaced, or 2%%")
    pattern_option(parser)
    json_options(parser)


def tolerance_option(parser: Parser, default: str) -> None:
    text = "how much peak, reserved memory and roles may grow: 5%% or 100MiB"
    parser.add_argument("--tolerance", metavar="LIMIT", help=f"{text} (default: {default})")


def fit(parser: argparse.ArgumentParser) -> None:
    """Compile a step for accelerators that are not here: does it fit, and what is the largest batch?

    FILE.py:FUNCTION is a function of `devices` and knobs. It returns a jitted function and the shapes of its arguments:

      def step(devices, batch=8, remat="none"):
          ...
          return jax.jit(train_step, donate_argnums=0), (state_shapes, batch_shapes)

    Every figure is that of a compiled program. Exit code 0 means that all that was asked for fits, 1 that something
    does not, 2 that something could not be compiled.

    A script, FILE.py or -m MODULE, runs as it is, with its own command line after `--`, in which {KNOB} is replaced.
    Large functions are not executed, and the one with the most work is compiled.

    Of a logdir, nothing is compiled: the answer is that of its candidates, which --to wrote. Without such candidates,
    or with --recording, what a recording needs is compared with the memory of chips.

    examples:
      tb-memplugin fit fit_gpt.py:step --on v5e:4x4 --vary batch --vary remat=none,full --to /tmp/xprof
      tb-memplugin fit fit_gpt.py:step --on v5e --set batch=512
      tb-memplugin fit train.py --on v5e:4x4 --vary batch=8:1024 -- --config.batch_size={batch}
      tb-memplugin fit /tmp/xprof --recording jit_train_step --on v5p
    """
    parser.add_argument(
        "step", metavar="FILE.py:FUNCTION", help="or a logdir or file, to answer from its candidates or recordings"
    )
    fitting_options(parser)
    parser.add_argument(
        "--try",
        action="store_true",
        dest="tries",
        help="compile the answers with each piece of advice that needs no change of your code: donation, sharding, "
        "compiler options, a knob such as microbatches, accumulation_steps or grad_accum; estimate the others",
    )
    parser.add_argument("--open", action="store_true", help="show the candidates in a browser at the end")
    parser.add_argument(
        "--recording", metavar="ID", help="of a logdir: the chips that have room for a recording, by its id or a part"
    )
    json_options(parser)


def plan(parser: argparse.ArgumentParser) -> None:
    """Find the fastest configuration of a step that fits: memory against estimated time, and what each choice costs.

    Each choice of --vary is compiled, for each target, as `tb-memplugin fit` does. Of many, only those near the best
    are. Numbers of microbatches and switches for recomputation are tried by themselves where the step has knobs for
    them, and changes that need no source, such as donation, are compiled for the fastest.

    The answer has, for each target, the candidates that no other beats in both memory and time. Times are estimated
    from the compiled program. Exit code 0 means that something fits, 1 that nothing does, 2 that nothing compiled.
    For a logdir, the candidates that --to wrote there are planned with.

    examples:
      tb-memplugin plan gpt.py:step --on v5e:4x4 --on v6e:2x4 --global-batch 512 --vary remat=none,full
      tb-memplugin plan gpt.py:step --on v5e:4x4 --vary batch=8:512:8 --vary remat=none,full --to /tmp/xprof
      tb-memplugin plan /tmp/xprof --price v5e=1.2,v6e=2.7
    """
    parser.add_argument("step", metavar="FILE.py:FUNCTION", help="or a logdir with the candidates of earlier fits")
    parser.add_argument(
        "--global-batch", metavar="N", type=int, help="the batch of all devices together, for the step's knob of it"
    )
    parser.add_argument(
        "--price",
        metavar="CHIP=PRICE",
        default="",
        help="of an hour of a chip, such as v5e=1.2,v6e=2.7: adds the cost of a million tokens or items",
    )
    fitting_options(parser)
    json_options(parser)


def fitting_options(parser: Parser) -> None:
    """Add the options that `fit` and `plan` have in common."""
    parser.add_argument("-m", action="store_true", dest="module", help="the step is that of a module, run as a script")
    parser.add_argument(
        "--jit", metavar="NAME", help="of a script: the function to compile (default: the one with the most work)"
    )
    repeated_option(
        parser,
        "--fake-input",
        "FUNCTION=TYPE",
        "of a script: let a function return data of ones, where its files are missing, "
        "as in 'data.batches=iter({image: float32[{batch},224,224,3], label: int32[{batch}]})'",
        dest="fakes",
    )
    repeated_option(
        parser,
        "--assume",
        "FUNCTION=NUMBER",
        "of a script: the whole numbers that a jitted function returns, where it is too large to be executed "
        "and the script takes them as sizes",
        dest="assumed",
    )
    compiling_options(parser)
    values = "search the largest value of a range that fits (batch, batch=8:512:8), or try each of a list"
    repeated_option(parser, "--vary", "KNOB[=VALUES]", f"{values} (remat=none,full)")
    parser.add_argument("--budget", metavar="SIZE", type=parse_size, help="such as 14GiB, in place of the chip's limit")
    parser.add_argument(
        "--prove",
        action=argparse.BooleanOptionalAction,
        help="compile each answer to the end, a minute or more, as its code and its kernels need memory as well; "
        "or none (default: those that may be refused for that)",
    )
    parser.add_argument("--to", metavar="LOGDIR", help="keep each candidate there, as a run")


def compiling_options(parser: Parser) -> None:
    """Add the options that `fit` and `check` have in common."""
    target_options(parser)
    parser.add_argument("--scheduler", metavar="ADDRESS", help="compile on a dask cluster, such as tcp://host:8786")
    limit_options(parser)


def scan_options(parser: Parser) -> None:
    """Add the options about how files are read, which `fleet` and `check` have in common."""
    parser.add_argument(
        "--join-within",
        metavar="SECONDS",
        type=float,
        default=PAUSE_SECONDS,
        help="longest pause between two sessions of one capture (default: %(default)s)",
    )
    parser.add_argument(
        "--numbered-files",
        metavar="HOW",
        choices=list(map(str, NumberedFiles)),
        default="auto",
        help="files whose names differ in numbers only: a series of one process, or a file for each of several hosts "
        "(default: auto, by their devices, steps, times and bytes)",
    )


def fleet(parser: argparse.ArgumentParser) -> None:
    """Find the worst device of many hosts, and why it differs from the others.

    Each host's file is read by a task of its own, on this machine's cores or on a dask cluster. Sessions of one capture
    are joined although their folders differ by seconds. A file that cannot be read is listed with its reason. Summaries
    are kept in the user's cache folder, so that a second look reads nothing again; `tb-memplugin cache` shows it.

    examples:
      tb-memplugin fleet gs://bucket/run42
      tb-memplugin fleet /tmp/xprof --to fleet.parquet
      tb-memplugin fleet --trend /tmp/xprof
    """
    parser.add_argument("logdirs", metavar="LOGDIR", nargs="+", help="logdirs, local or remote, which are read as one")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--capture", metavar="NAME", help="a capture whose name contains this (default: the newest)")
    which.add_argument("--all", action="store_true", help="every capture")
    which.add_argument(
        "--trend", action="store_true", help="the peaks of all captures, day by day, and what raised them"
    )
    parser.add_argument(
        "--by",
        choices=list(map(str, TrendBy)),
        default="day",
        help="with --trend: a line for each (default: %(default)s)",
    )
    scan_options(parser)
    # `check` has options of these names for compiling.
    parser.add_argument("--jobs", type=int, help="files to read at a time (default: as many as cores)")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="read on a dask cluster, such as tcp://host:8786")
    parser.add_argument("--no-cache", action="store_true", help="read again what is in the cache")
    output_options(parser, "write a row for each device and program", TABLES, required=False)
    json_options(parser)
