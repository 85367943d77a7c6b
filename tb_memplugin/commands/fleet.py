"""The command `fleet`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tb_memplugin.commands.options.shared import TABLES
from tb_memplugin.commands.support.output import asked, check_format, check_output, output_file, print_written
from tb_memplugin.commands.support.terminal import complain, paragraphs, print_answer, reply, show
from tb_memplugin.errors import InputError
from tb_memplugin.executors import DaskCluster, LocalProcesses, TaskExecutor
from tb_memplugin.fleet import series
from tb_memplugin.fleet.cache import SummaryCache
from tb_memplugin.fleet.scan import Scan, known_captures
from tb_memplugin.fleet.sessions import Capture, captures, chosen_capture, rule_text
from tb_memplugin.fleet.trend import trend
from tb_memplugin.logdir import find_runs
from tb_memplugin.model.fleet import Fleet, KnownCapture
from tb_memplugin.model.kinds import NumberedFiles, TrendBy
from tb_memplugin.model.lazy import Lazy
from tb_memplugin.questions.asking.asked import Asked
from tb_memplugin.questions.export.formats import write_csv_tables, write_json_tables, write_parquet_tables
from tb_memplugin.questions.fleet.answer import JoiningRules, fleet_answer
from tb_memplugin.questions.fleet.capture import without_devices
from tb_memplugin.questions.fleet.devices import fleet_table
from tb_memplugin.questions.fleet.terminal import fleet_progress, left_out_lines, lines, trend_lines
from tb_memplugin.questions.fleet.trend import trend_answer
from tb_memplugin.sizes import counted


@contextmanager
def open_scan(arguments: argparse.Namespace) -> Iterator[tuple[Scan, list[Capture]]]:
    """Yield a scan, which starts processes when it needs them, and the captures of the logdirs, newest first."""
    executor: Lazy[TaskExecutor] = Lazy(
        lambda: DaskCluster(arguments.scheduler) if arguments.scheduler else LocalProcesses(arguments.jobs)
    )
    if arguments.jobs is not None and arguments.jobs < 1:
        raise InputError("No process", "--jobs", "give a number from 1 up")
    runs = [run for logdir in dict.fromkeys(arguments.logdirs) for run in find_runs(logdir)]
    try:
        cache = None if arguments.no_cache else SummaryCache()
        numbered = NumberedFiles(arguments.numbered_files)
        yield Scan(executor, cache, numbered), captures(runs, arguments.join_within)
    finally:
        if executor.computed:
            executor().stop()


def read(
    arguments: argparse.Namespace, scan: Scan, found: Sequence[Capture], quiet: bool
) -> tuple[list[Fleet], list[KnownCapture]]:
    """Read the captures that are asked for; return them, and the summaries of the others. InputError without any.

    Captures that are not taken as the newest, and the progress unless `quiet`, are printed to standard error.
    """
    chosen, smaller = (found, ()) if arguments.all else chosen_capture(found, arguments.capture)
    for text in smaller:
        complain(f"tb-memplugin: {text}: see --capture")
    with fleet_progress(sys.stderr, quiet) as done:
        fleets = scan.fleets(chosen, done)
    return fleets, known_captures([capture for capture in found if capture not in chosen], scan.cache)


def run(arguments: argparse.Namespace) -> int:
    if arguments.to is not None:
        if arguments.trend:
            raise InputError("No table of a trend", "--to", "leave out --trend for rows of all captures, or use --json")
        check_format(arguments.to, TABLES)
        for logdir in arguments.logdirs:
            check_output(arguments.to, logdir, arguments.force)
    with open_scan(arguments) as (scan, found):
        if arguments.trend:
            return _show_trend(arguments, scan, found)
        fleets, left_out = read(arguments, scan, found, quiet=arguments.json)
    if arguments.to:
        _write(arguments, fleets)
    else:
        _show(arguments, fleets, left_out)
    return _status(arguments, any(fleet.devices for fleet in fleets))


def _status(arguments: argparse.Namespace, has_devices: bool) -> int:
    """Return the exit code, and say on standard error where there is nothing to tell."""
    if has_devices:
        return 0
    where = ", ".join(arguments.logdirs)
    complain(f"tb-memplugin: No memory data of devices: {where}: `tb-memplugin summary` lists the recordings")
    return 2


def _show(arguments: argparse.Namespace, fleets: Sequence[Fleet], left_out: Sequence[KnownCapture]) -> None:
    rule = rule_text(arguments.join_within)
    if arguments.json:
        rules = JoiningRules(rule=rule, tolerance_seconds=arguments.join_within, series_rule=series.RULE)
        print_answer(fleet_answer(fleets, left_out, rules, _asked(arguments)))
        return
    show(*paragraphs([*(lines(fleet, rule, series.RULE) for fleet in fleets), left_out_lines(left_out)]))
    if left_out:
        others = counted(len(left_out), "older capture" if arguments.capture is None else "other capture")
        complain(f"tb-memplugin: {others} left out: see --all, --capture, --trend")


def _asked(arguments: argparse.Namespace) -> Asked:
    """Return the question. One about several logdirs has no further questions about all of them."""
    return asked(arguments, arguments.logdirs[0] if len(arguments.logdirs) == 1 else "-")


def _show_trend(arguments: argparse.Namespace, scan: Scan, found: Sequence[Capture]) -> int:
    with fleet_progress(sys.stderr, arguments.json) as done:
        found_series = trend(found, scan, done, by := TrendBy(arguments.by))
    reply(arguments.json, lambda: trend_answer(found_series, _asked(arguments)), trend_lines(found_series, by))
    return _status(arguments, bool(found_series))


def _write(arguments: argparse.Namespace, fleets: Sequence[Fleet]) -> None:
    table, file = fleet_table(fleets), arguments.to
    with output_file(file) as stream:
        if file.endswith(".parquet"):
            metadata = json.dumps({"captures": without_devices(fleets)}, allow_nan=False)
            write_parquet_tables(iter([table]), metadata, stream)
        elif file.endswith((".csv", ".csv.gz")):
            write_csv_tables(iter([table]), stream)
        else:
            write_json_tables(iter([table]), stream)
    rows = len(table["kind"])
    content = f"{counted(rows, 'row')} of {counted(len(fleets), 'capture')}"
    print_written(arguments, rows, [fleet.name for fleet in fleets], content)
