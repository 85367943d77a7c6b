"""Options of the commands that answer questions about recordings."""

from __future__ import annotations

import argparse

from tb_memplugin.commands.options.shared import (
    JSON,
    MARKDOWN,
    PATH,
    REPORT,
    TABLES,
    json_options,
    limit_options,
    output_options,
    path_option,
    pattern_option,
    recording_options,
    target_options,
    top_option,
)
from tb_memplugin.questions.asking.arguments import AT, AT_A, AT_B, BY, MATCH, ROW

EXPORTED = (*TABLES, REPORT)


def summary(parser: argparse.ArgumentParser) -> None:
    """List the recordings in a file or logdir, with peak, capacity and caveats.

    Prints one line per recording: one memory of a compiled program, or one
    allocator over time. Programs that are equal on several hosts share a line.

    examples:
      tb-memplugin summary /tmp/xprof
      tb-memplugin summary train.pickle --json
    """
    path_option(parser)
    json_options(parser)


def explain(parser: argparse.ArgumentParser) -> None:
    """Explain the peak: which memory is live, what it is for, and how to use less.

    Breaks down live bytes by role, model path, source line and shape, lists leaks
    in recordings over time, and suggests changes with the bytes they save.

    examples:
      tb-memplugin explain /tmp/xprof
      tb-memplugin explain /tmp/xprof --recording jit_train_step --json
      tb-memplugin explain train.pickle --at 1.5s
      tb-memplugin explain - < error.txt
    """
    recording_options(parser)
    AT.add_to(parser, "TIME")
    json_options(parser)


def buffers(parser: argparse.ArgumentParser) -> None:
    """List the largest live buffers, or everything that is known of one.

    examples:
      tb-memplugin buffers /tmp/xprof
      tb-memplugin buffers /tmp/xprof --match attention --top 20 --json
      tb-memplugin buffers /tmp/xprof --row 304 --json
    """
    recording_options(parser)
    AT.add_to(parser, "TIME")
    MATCH.add_to(parser, "TEXT")
    ROW.add_to(parser, "N")
    json_options(parser)


def times(parser: argparse.ArgumentParser) -> None:
    """Tell how long a compiled program and its instructions run, and how long memory is held.

    A profile of a device has measured times. Beside them, or without them, the
    times are estimated from bytes and FLOPs, for the chip that the program is for.

    examples:
      tb-memplugin times /tmp/xprof
      tb-memplugin times /tmp/xla_dump --recording jit_train_step --top 20 --json
    """
    recording_options(parser)
    json_options(parser)


def advice(parser: argparse.ArgumentParser) -> None:
    """List changes that lower the peak, with the code to write.

    The largest saving for the time that it costs comes first. Each change is
    simulated on its own; savings are not additive. For a program
    that does not fit, the smallest set of changes with which it fits comes first.
    Where `tb-memplugin fit --try` compiled a change, its figure replaces the
    estimate. With --compile, a program of an XLA dump is compiled again here, for
    the chip that it is for, with each change that needs none of your code. With
    --step, the step of a PyTorch snapshot is traced without a GPU, likewise.

    examples:
      tb-memplugin advice /tmp/xprof
      tb-memplugin advice /tmp/xprof --recording jit_train_step --json
      tb-memplugin advice /tmp/xla_dump --compile --to /tmp/xprof
      tb-memplugin advice step.pickle --step train.py:step --on h100 --set batch=8
    """
    recording_options(parser)
    again = parser.add_mutually_exclusive_group()
    again.add_argument(
        "--compile",
        action="store_true",
        help="compile the program of an XLA dump again, with each change that needs no code",
    )
    again.add_argument(
        "--step",
        metavar="FILE.py:FUNCTION",
        help="trace the step of a PyTorch snapshot, as `tb-memplugin fit` does, with each change",
    )
    target_options(parser)
    parser.add_argument("--to", metavar="LOGDIR", help="keep what was compiled or traced there, as runs")
    limit_options(parser)
    json_options(parser)


def compare(parser: argparse.ArgumentParser) -> None:
    """Compare the memory of two files, runs or moments.

    Shows how much the peak grew, and which allocation sites grew, shrank, are new
    or are gone.

    examples:
      tb-memplugin compare before.pickle after.pickle
      tb-memplugin compare run1/ run2/ --recording jit_train_step --by model
      tb-memplugin compare main/ branch/ --fail-if-peak-grows 2% --markdown

    Exit code 1 means that a peak grew by more than --fail-if-peak-grows allows.
    """
    parser.add_argument("a", metavar="A", help=f"the old state: {PATH}")
    parser.add_argument("b", metavar="B", help="the new state, likewise")
    parser.add_argument(
        "--recording",
        metavar="NAME",
        help="use only recordings whose id contains this text, such as jit_train_step, HBM or cuda:0",
    )
    AT_A.add_to(parser, "TIME")
    AT_B.add_to(parser, "TIME")
    BY.add_to(parser)
    parser.add_argument(
        "--fail-if-peak-grows",
        metavar="LIMIT",
        help="exit with code 1 if the peak of B exceeds that of A by more than this: 2%% or 100MiB",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help=JSON)
    top_option(parser)
    form.add_argument("--markdown", action="store_true", help=MARKDOWN)


def export(parser: argparse.ArgumentParser) -> None:
    """Export allocations as CSV, JSON or Parquet, or the page as one HTML file.

    Tables have one row per buffer or allocation. The HTML file is a report that
    works offline: it contains the page and its data.

    examples:
      tb-memplugin export /tmp/xprof --to buffers.parquet
      tb-memplugin export /tmp/xprof --to report.html --recording 'jit_train_step'
    """
    path_option(parser)
    output_options(parser, "output file; its suffix selects the format", EXPORTED, required=True)
    pattern_option(parser)
    json_options(parser)
