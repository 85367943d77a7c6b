"""The command `check`."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Event

from tb_memplugin.catalog.dumps import missing_text
from tb_memplugin.commands import baseline
from tb_memplugin.commands.output import asked, listing_of, pattern_of, print_problems
from tb_memplugin.commands.terminal import print_answer, show
from tb_memplugin.errors import InputError
from tb_memplugin.model.fit import Outcome, outcome_json
from tb_memplugin.model.kinds import FAIL_ON
from tb_memplugin.questions.asking.json_types import ProblemJson, problems_json
from tb_memplugin.questions.asking.selectors import no_recordings
from tb_memplugin.questions.compare.budget import budget, budget_lines, check_answer, explanation
from tb_memplugin.questions.fit.answer import CheckedCandidateJson, check_step_answer
from tb_memplugin.questions.fit.words import verdict
from tb_memplugin.sizes import parse_size


def run(arguments: argparse.Namespace) -> int:
    if (arguments.path is None) == (arguments.step is None):
        raise InputError("Nothing to check", "PATH or --fit", "give one of them")
    if arguments.baseline is not None:
        return _check_baseline(arguments)
    if arguments.max_bytes is not None or arguments.markdown:
        raise InputError("No baseline", "--markdown and --max-bytes", "they are options of --baseline FILE")
    limit = parse_size(arguments.max_peak) if arguments.max_peak else None
    if arguments.step is not None:
        return _check_step(arguments, limit)
    if arguments.fleet or arguments.max_spread or arguments.all_captures or _hosts_are_checked(arguments):
        return _check_fleet(arguments, limit)
    if limit is None:
        raise InputError("No budget", "--max-peak", "give a size, such as 70GiB")
    return _check_recordings(arguments, limit)


def _check_baseline(arguments: argparse.Namespace) -> int:
    fleet = arguments.max_spread or arguments.fleet or _hosts_are_checked(arguments)
    if arguments.max_peak or fleet or arguments.step is not None:
        raise InputError("Two budgets", "--baseline", "check the baseline and other budgets with a call each")
    return baseline.check(arguments)


def _hosts_are_checked(arguments: argparse.Namespace) -> bool:
    return arguments.expect is not None or bool(arguments.fail_on)


def _check_recordings(arguments: argparse.Namespace, limit: int) -> int:
    pattern = pattern_of(arguments.recording)
    listing = listing_of(arguments.path, pattern.search if arguments.recording else None)
    answer = budget(listing.recordings, limit, pattern)
    print_problems(answer["problems"])
    stages: list[ProblemJson] = [
        {"file": skipped.path, "text": missing_text([skipped])} for skipped in listing.stages if skipped.modules
    ]
    answer["problems"] = unchecked = [*problems_json(listing.problems), *stages, *answer["problems"]]
    if not listing.recordings:
        raise no_recordings(arguments.path, listing.problems)
    if not answer["checked"]:
        raise InputError(
            "No recordings to check",
            arguments.recording or arguments.path,
            "`tb-memplugin summary` lists the recordings",
        )
    if arguments.json:
        print_answer(check_answer(answer, asked(arguments, arguments.path)))
    else:
        show(*budget_lines(answer))
    if answer["broken"]:
        return 1
    # What cannot be read or checked may be above the budget.
    return 2 if unchecked else 0


def _check_fleet(arguments: argparse.Namespace, limit: int | None) -> int:
    from tb_memplugin.commands import fleet
    from tb_memplugin.fleet.scan import known_captures
    from tb_memplugin.questions.fleet.budget import check_fleet_answer, fleet_budget, fleet_budget_lines, share_of

    spread = share_of(arguments.max_spread) if arguments.max_spread else None
    if limit is None and spread is None and not _hosts_are_checked(arguments):
        raise InputError(
            "No budget", "--max-peak or --max-spread", "give a size, such as 70GiB, or a share, such as 5%"
        )
    fail_on = [kind.strip() for kind in arguments.fail_on.split(",") if kind.strip()]
    if unknown := [kind for kind in fail_on if kind not in FAIL_ON]:
        raise InputError("Nothing to fail on", unknown[0], f"choose from {', '.join(FAIL_ON)}")
    arguments.logdirs, arguments.all = [arguments.path], arguments.all_captures
    with fleet.open_scan(arguments) as (scan, found):
        chosen = fleet.choose(arguments, found)
        fleets = fleet.read(scan, chosen, quiet=True)
        left_out = known_captures([capture for capture in found if capture not in chosen], scan.cache)
    answer = fleet_budget(fleets, limit, spread, left_out, arguments.expect, fail_on)
    print_problems([{"file": problem["file"], "text": problem["text"]} for problem in answer["problems"]])
    if not answer["devices"]:
        raise InputError("No devices to check", arguments.path, "`tb-memplugin fleet` lists the problems")
    if arguments.json:
        print_answer(check_fleet_answer(answer, asked(arguments, arguments.path)))
    else:
        show(*fleet_budget_lines(answer))
    return 1 if answer["broken"] or answer["failures"] else 2 if answer["problems"] else 0


def _check_step(arguments: argparse.Namespace, limit: int | None) -> int:
    from tb_memplugin.commands import fit

    stop = Event()
    with tempfile.TemporaryDirectory(prefix="tb_memplugin_") as logdir:
        with fit.open_sweep(arguments, Path(logdir), limit, stop) as sweep:
            found = fit.answer(sweep, quiet=True)
        outcomes = [one.last for one in found]
        if arguments.json:
            checked: list[CheckedCandidateJson] = [
                {**outcome_json(one), "explanation": [*filter(None, _explanation(one, logdir))]} for one in outcomes
            ]
            print_answer(check_step_answer(checked, asked(arguments, "-")))
        else:
            show(*_lines(outcomes, logdir))
    return fit.status(found, stop)


def _lines(outcomes: Sequence[Outcome], logdir: str) -> Iterator[str]:
    for outcome in outcomes:
        yield verdict(outcome)
        for line in _explanation(outcome, logdir):
            yield f"    {line}".rstrip()


def _explanation(outcome: Outcome, logdir: str) -> Iterator[str]:
    """Yield what takes the memory of a program that does not fit."""
    if outcome.reserved_bytes is None or outcome.fits:
        return
    programs = listing_of(str(Path(logdir, outcome.run))).recordings
    yield from explanation(next(program for program in programs if program.is_main_memory))
