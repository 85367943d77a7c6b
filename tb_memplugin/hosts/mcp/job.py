"""Answers about a whole job: its hosts, its trend, and checks against a budget or a baseline."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from tb_memplugin import logdir
from tb_memplugin.errors import InputError
from tb_memplugin.executors import LocalProcesses
from tb_memplugin.fleet import series
from tb_memplugin.fleet.cache import SummaryCache
from tb_memplugin.fleet.known import known_captures
from tb_memplugin.fleet.scan import Scan
from tb_memplugin.fleet.sessions import Capture, captures, chosen_capture, rule_text
from tb_memplugin.fleet.trend import trend
from tb_memplugin.hosts.mcp.reader import LogdirReader, inner_path
from tb_memplugin.model.fleet import Fleet, KnownCapture
from tb_memplugin.model.kinds import PAUSE_SECONDS, NumberedFiles, TrendBy
from tb_memplugin.model.lazy import Lazy
from tb_memplugin.questions.asking.asked import Asked
from tb_memplugin.questions.asking.json_types import problems_json
from tb_memplugin.questions.compare.baseline import (
    baseline_answer,
    baseline_check,
    baseline_facts,
    check_baseline_answer,
)
from tb_memplugin.questions.compare.baseline_file import TOLERANCE, read_baseline
from tb_memplugin.questions.compare.budget import budget, check_answer
from tb_memplugin.questions.fleet.answer import JoiningRules, fleet_answer
from tb_memplugin.questions.fleet.budget import check_fleet_answer, fleet_budget, share_of
from tb_memplugin.questions.fleet.trend import trend_answer
from tb_memplugin.regex import Regex
from tb_memplugin.sizes import parse_size


@contextmanager
def _scan(reader: LogdirReader, path: str) -> Iterator[tuple[Scan, list[Capture]]]:
    """Yield a scan and the captures below a path, newest first. Processes start when files are read."""
    processes, found = Lazy(LocalProcesses), captures(reader.runs(path))
    try:
        yield Scan(processes, SummaryCache(), NumberedFiles.AUTO), found
    finally:
        if processes.computed:
            processes().stop()


def _read(reader: LogdirReader, path: str, capture: str | None) -> tuple[list[Fleet], list[KnownCapture]]:
    """Read a capture, and return the others, as far as they are known."""
    with _scan(reader, path) as (scan, found):
        chosen, _ = chosen_capture(found, capture)
        return scan.fleets(chosen), known_captures([each for each in found if each not in chosen], scan.cache)


def fleet(reader: LogdirReader, path: str, capture: str | None, asked: Asked) -> object:
    """Return the devices of the newest capture, or of one of this name."""
    fleets, left_out = _read(reader, path, capture)
    rules = JoiningRules(rule=rule_text(), tolerance_seconds=PAUSE_SECONDS, series_rule=series.RULE)
    return fleet_answer(fleets, left_out, rules, asked)


def fleet_trend(reader: LogdirReader, path: str, by: str, asked: Asked) -> object:
    """Return the peaks of all captures over time."""
    with _scan(reader, path) as (scan, found):
        return trend_answer(trend(found, scan, by=TrendBy(by)), asked)


def check(reader: LogdirReader, path: str, recording: str | None, max_peak: str, asked: Asked) -> object:
    """Return the recordings above a budget."""
    listing = reader.listing(path)
    answer = budget(listing.recordings, parse_size(max_peak), Regex(recording or "", "recording"))
    answer["problems"] = [*problems_json(listing.problems), *answer["problems"]]
    if not answer["checked"]:
        raise InputError("No recordings to check", recording or path, "`summary` lists the recordings")
    return check_answer(answer, asked)


def check_fleet(
    reader: LogdirReader, path: str, max_peak: str | None, max_spread: str | None, expect: int | None, asked: Asked
) -> object:
    """Return the devices and hosts of the newest capture that exceed the limits."""
    limit, spread = parse_size(max_peak) if max_peak else None, share_of(max_spread) if max_spread else None
    fleets, left_out = _read(reader, path, None)
    return check_fleet_answer(fleet_budget(fleets, limit, spread, left_out, expect), asked)


def check_baseline(reader: LogdirReader, path: str, recording: str | None, baseline: str, asked: Asked) -> object:
    """Return what grew since a baseline, which is a file of the logdir."""
    before = read_baseline(_file(reader, baseline))
    listing, pattern = reader.listing(path), Regex(recording or "", "recording")
    chosen = [each for each in listing.recordings if pattern.search(each.id)]
    found = baseline_check(baseline, before.recordings, chosen, before.tolerance)
    found = found._replace(problems=[*problems_json(listing.problems), *found.problems])
    if not found.checked:
        raise InputError("No recording is in the baseline", recording or path, "`summary` lists the recordings")
    return check_baseline_answer(found, asked)


def baseline(reader: LogdirReader, path: str, recording: str | None, asked: Asked) -> object:
    """Return what a baseline of these recordings contains. Nothing is written."""
    listing, pattern = reader.listing(path), Regex(recording or "", "recording")
    found, failed = baseline_facts([each for each in listing.recordings if pattern.search(each.id)])
    if not found:
        raise InputError("No recordings for a baseline", recording or path, "`summary` lists the recordings")
    return baseline_answer(None, TOLERANCE, found, [*problems_json(listing.problems), *failed], asked)


def _file(reader: LogdirReader, name: str) -> str:
    """Return the path of a file in the logdir. InputError where it leads out of it."""
    if logdir.is_remote(reader.root):
        raise InputError("A remote logdir", name, "check against a baseline with the command, from a local file")
    root = os.path.realpath(os.path.expanduser(reader.root))
    file = os.path.realpath(os.path.join(root, inner_path(name)))
    if not file.startswith(f"{root}{os.sep}"):
        raise InputError("Not a file in the logdir", name, "copy the baseline into the logdir")
    return file
