"""The command `check`."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from tb_memplugin.catalog.dumps import missing_text
from tb_memplugin.commands import baseline
from tb_memplugin.commands.support.output import asked, listing_and_pattern, listing_of, no_match, print_problems
from tb_memplugin.commands.support.terminal import reply
from tb_memplugin.errors import InputError
from tb_memplugin.model.fit import Outcome, outcome_json
from tb_memplugin.model.kinds import FAIL_ON
from tb_memplugin.questions.asking.json_types import ProblemJson, problems_json
from tb_memplugin.questions.asking.selectors import no_recordings
from tb_memplugin.questions.compare.budget import budget, budget_lines, check_answer, explanation
from tb_memplugin.questions.fit.answer import CheckedCandidateJson, CheckStepAnswerJson
from tb_memplugin.questions.fit.words import verdict
from tb_memplugin.sizes import parse_size


def run(arguments: argparse.Namespace) -> int:
    if (arguments.path is None) == (arguments.step is None):
        raise InputError("Nothing to check", "PATH or --fit", "give one of them")
    of_fleet = arguments.fleet or arguments.max_spread or arguments.expect is not None or arguments.fail_on
    if arguments.baseline is not None:
        if arguments.max_peak or of_fleet or arguments.step is not None:
            raise InputError("Two budgets", "--baseline", "check the baseline and other budgets with a call each")
        return baseline.check(arguments)
    if arguments.max_bytes is not None or arguments.markdown:
        raise InputError("No baseline", "--markdown and --max-bytes", "they are options of --baseline FILE")
    limit = parse_size(arguments.max_peak) if arguments.max_peak else None
    if arguments.step is not None:
        return _check_step(arguments, limit)
    if of_fleet or arguments.all_captures:
        return _check_fleet(arguments, limit)
    if limit is None:
        raise InputError("No budget", "--max-peak", "give a size, such as 70GiB")
    return _check_recordings(arguments, limit)


def _check_recordings(arguments: argparse.Namespace, limit: int) -> int:
    listing, pattern = listing_and_pattern(arguments)
    answer = budget(listing.recordings, limit, pattern)
    print_problems(answer["problems"])
    stages: list[ProblemJson] = [
        {"file": skipped.path, "text": missing_text([skipped])} for skipped in listing.stages if skipped.modules
    ]
    answer["problems"] = unchecked = [*problems_json(listing.problems), *stages, *answer["problems"]]
    if not listing.recordings:
        raise no_recordings(arguments.path, listing.problems)
    if not answer["checked"]:
        raise no_match("No recordings to check", arguments)
    reply(arguments.json, lambda: check_answer(answer, asked(arguments, arguments.path)), budget_lines(answer))
    if answer["broken"]:
        return 1
    # What cannot be read or checked may be above the budget.
    return 2 if unchecked else 0


def _check_fleet(arguments: argparse.Namespace, limit: int | None) -> int:
    from tb_memplugin.commands import fleet
    from tb_memplugin.questions.fleet.budget import check_fleet_answer, fleet_budget, fleet_budget_lines, share_of

    spread = share_of(arguments.max_spread) if arguments.max_spread else None
    if limit is None and spread is None and arguments.expect is None and not arguments.fail_on:
        raise InputError(
            "No budget", "--max-peak or --max-spread", "give a size, such as 70GiB, or a share, such as 5%"
        )
    fail_on = [kind.strip() for kind in arguments.fail_on.split(",") if kind.strip()]
    if unknown := [kind for kind in fail_on if kind not in FAIL_ON]:
        raise InputError("Nothing to fail on", unknown[0], f"choose from {', '.join(FAIL_ON)}")
    arguments.logdirs, arguments.all = [arguments.path], arguments.all_captures
    with fleet.open_scan(arguments) as (scan, found):
        fleets, left_out = fleet.read(arguments, scan, found, quiet=True)
    answer = fleet_budget(fleets, limit, spread, left_out, arguments.expect, fail_on)
    print_problems([{"file": problem["file"], "text": problem["text"]} for problem in answer["problems"]])
    if not answer["devices"]:
        raise InputError("No devices to check", arguments.path, "`tb-memplugin fleet` lists the problems")
    question = asked(arguments, arguments.path)
    reply(arguments.json, lambda: check_fleet_answer(answer, question), fleet_budget_lines(answer))
    return 1 if answer["broken"] or answer["failures"] else 2 if answer["problems"] else 0


def _check_step(arguments: argparse.Namespace, limit: int | None) -> int:
    from tb_memplugin.commands import fit

    with tempfile.TemporaryDirectory(prefix="tb_memplugin_") as logdir:
        with fit.open_sweep(arguments, Path(logdir), limit) as (sweep, stop):
            found = fit.answer(sweep, quiet=True)
        explained = [(one.last, _explanation(one.last, logdir)) for one in found]
        checked: list[CheckedCandidateJson] = [
            {**outcome_json(outcome), "explanation": [*filter(None, lines)]} for outcome, lines in explained
        ]
        # The programs are not kept, so nothing more can be asked about them.
        answer = asked(arguments, "-").answer(CheckStepAnswerJson, checked=checked)
        texts = ([verdict(outcome), *(f"    {line}".rstrip() for line in lines)] for outcome, lines in explained)
        reply(arguments.json, lambda: answer, chain.from_iterable(texts))
    return fit.status(found, stop)


def _explanation(outcome: Outcome, logdir: str) -> Sequence[str]:
    """Return what takes the memory of a program that does not fit."""
    if outcome.reserved_bytes is None or outcome.fits:
        return ()
    programs = listing_of(str(Path(logdir, outcome.run))).recordings
    return explanation(next(program for program in programs if program.is_main_memory))
