"""Find the worst device of many hosts, and why it differs from the others.

Each host's file is read by a task of its own, on this machine's cores or on a dask cluster. Sessions of one capture are
joined although their folders differ by seconds. A file that cannot be read is listed with its reason. Summaries are
kept in the user's cache folder, so that a second look reads nothing again; `tb-memplugin cache` shows it.

examples:
  tb-memplugin fleet gs://bucket/run42
  tb-memplugin fleet /tmp/xprof --to fleet.parquet
  tb-memplugin fleet --trend /tmp/xprof
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tb_memplugin.commands.fleet_reading import choose, open_scan, read, reading_options, scan_options
from tb_memplugin.commands.json_output import asked, json_options, print_answer, print_written
from tb_memplugin.commands.streams import show as print_text
from tb_memplugin.commands.terminal import printable
from tb_memplugin.errors import InputError
from tb_memplugin.sizes import bytes_text, counted

if TYPE_CHECKING:
    from tb_memplugin.fleet.scan import Scan
    from tb_memplugin.fleet.sessions import Capture
    from tb_memplugin.model.fleet import Fleet, KnownCapture
    from tb_memplugin.views.answers.asked import Asked

SUFFIXES = (".parquet", ".csv", ".csv.gz", ".json", ".json.gz")


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("logdirs", metavar="LOGDIR", nargs="+", help="logdirs, local or remote, which are read as one")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--capture", metavar="NAME", help="a capture whose name contains this (default: the newest)")
    which.add_argument("--all", action="store_true", help="every capture")
    which.add_argument(
        "--trend", action="store_true", help="the peaks of all captures, day by day, and what raised them"
    )
    parser.add_argument(
        "--by", choices=("day", "capture"), default="day", help="with --trend: a line for each (default: %(default)s)"
    )
    scan_options(parser)
    reading_options(parser)
    parser.add_argument("--to", metavar="FILE", help=f"write a row for each device and program: {', '.join(SUFFIXES)}")
    parser.add_argument("--force", action="store_true", help="overwrite FILE if it exists")
    json_options(parser)


def run(arguments: argparse.Namespace) -> int:
    from tb_memplugin.fleet.known import known_captures

    check_output_of(arguments)
    with open_scan(arguments) as (scan, found):
        if arguments.trend:
            return _show_trend(arguments, scan, found)
        chosen = choose(arguments, found)
        fleets = read(scan, chosen, quiet=arguments.json)
        left_out = known_captures([capture for capture in found if capture not in chosen], scan.cache)
    if arguments.to:
        _write(arguments, fleets)
    else:
        _show(arguments, fleets, left_out)
    return 0 if any(fleet.devices for fleet in fleets) else 2


def check_output_of(arguments: argparse.Namespace) -> None:
    """Raise InputError where the output cannot be written."""
    from tb_memplugin.commands.output_file import check_output
    from tb_memplugin.views.export.parquet import can_write_parquet

    if arguments.to is None:
        return
    if arguments.trend:
        raise InputError("No table of a trend", "--to", "leave out --trend for rows of all captures, or use --json")
    if not arguments.to.endswith(SUFFIXES):
        raise InputError("Unknown output format", arguments.to, f"use one of the suffixes {', '.join(SUFFIXES)}")
    if arguments.to.endswith(".parquet") and not can_write_parquet():
        raise InputError("Parquet needs pyarrow", arguments.to, "run `pip install pyarrow`, or write .csv or .json")
    for logdir in arguments.logdirs:
        check_output(arguments.to, logdir, arguments.force)


def _show(arguments: argparse.Namespace, fleets: Sequence[Fleet], left_out: Sequence[KnownCapture]) -> None:
    from tb_memplugin.fleet import series
    from tb_memplugin.fleet.sessions import rule_text
    from tb_memplugin.views.shared.fleet_json import FleetJson, capture_json, left_out_json
    from tb_memplugin.views.terminal.fleet import left_out_lines, lines

    rule = rule_text(arguments.join_within)
    if arguments.json:
        from tb_memplugin.views.answers.fleet import fleet_answer

        found: FleetJson = {
            "rule": rule,
            "tolerance_seconds": arguments.join_within,
            "series_rule": series.RULE,
            "captures": [capture_json(fleet) for fleet in fleets],
            "left_out": list(map(left_out_json, left_out)),
        }
        print_answer(fleet_answer(fleets, found, _asked(arguments)))
        return
    pieces = [lines(fleet, rule, series.RULE) for fleet in fleets]
    pieces += [left_out_lines(left_out)]
    print_text("\n\n".join(filter(None, ("\n".join(map(printable, piece)) for piece in pieces))))
    if left_out:
        others = counted(len(left_out), "older capture" if arguments.capture is None else "other capture")
        print(f"tb-memplugin: {others} left out: see --all, --capture, --trend", file=sys.stderr)


def _asked(arguments: argparse.Namespace) -> Asked:
    """Return the question. One about several logdirs has no further questions about all of them."""
    return asked(arguments, arguments.logdirs[0] if len(arguments.logdirs) == 1 else "-")


def _show_trend(arguments: argparse.Namespace, scan: Scan, found: Sequence[Capture]) -> int:
    from tb_memplugin.fleet.trend import trend
    from tb_memplugin.model.fleet_trend import TrendBy
    from tb_memplugin.views.terminal.fleet_progress import FleetProgress
    from tb_memplugin.views.terminal.fleet_trend import lines

    with FleetProgress(sys.stderr, arguments.json) as progress:
        series = trend(found, scan, progress.done, by := TrendBy(arguments.by))
    if arguments.json:
        from tb_memplugin.views.answers.fleet import trend_answer

        print_answer(trend_answer(series, _asked(arguments)))
    else:
        print_text("\n".join(map(printable, lines(series, by))))
    return 0 if series else 2


def _write(arguments: argparse.Namespace, fleets: Sequence[Fleet]) -> None:
    import os

    from tb_memplugin.commands.output_file import atomic_file, compress, ending_by_signals
    from tb_memplugin.views.export.csv import write_csv_tables
    from tb_memplugin.views.export.fleet import fleet_table, write_rows_json
    from tb_memplugin.views.export.parquet import write_parquet_tables
    from tb_memplugin.views.shared.fleet_json import capture_json

    table, file = fleet_table(fleets), arguments.to
    with ending_by_signals(), atomic_file(file) as stream, compress(stream, file) as compressed:
        if file.endswith(".parquet"):
            captures = [capture_json(fleet, devices=False) for fleet in fleets]
            write_parquet_tables(iter([table]), json.dumps({"captures": captures}, allow_nan=False), compressed)
        elif file.endswith((".csv", ".csv.gz")):
            write_csv_tables(iter([table]), compressed)
        else:
            write_rows_json(table, compressed)
    rows = counted(len(table["kind"]), "row")
    if arguments.json:
        print_written(file, len(table["kind"]), [fleet.name for fleet in fleets], [], _asked(arguments))
        return
    print_text(f"{printable(file)}: {bytes_text(os.path.getsize(file))}, {rows} of {counted(len(fleets), 'capture')}")
