"""The command `plan`."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tb_memplugin.catalog.fit_records import records_of_path
from tb_memplugin.commands.fit import STOPPED, asked_step, complain_of, open_sweep, progress
from tb_memplugin.commands.support.output import asked, print_problems
from tb_memplugin.commands.support.stored_fits import is_stored
from tb_memplugin.commands.support.terminal import complain, reply
from tb_memplugin.errors import InputError
from tb_memplugin.fit.plan import compile_plan, knobs_of_batch, proposed_knobs
from tb_memplugin.model.fit_plan import Plan, plan
from tb_memplugin.questions.asking.json_types import problems_json
from tb_memplugin.questions.fit.answer import planned_candidates
from tb_memplugin.questions.fit.plan import lines, plan_answer
from tb_memplugin.targets import chip_of


def run(arguments: argparse.Namespace) -> int:
    prices = _prices(arguments.price)
    if not arguments.module and is_stored(arguments.step):
        return _show_stored(arguments, prices)
    _add_knobs(arguments)
    with (
        tempfile.TemporaryDirectory(prefix="tb_memplugin_") as temporary,
        open_sweep(arguments, Path(arguments.to or temporary), arguments.budget) as (sweep, stop),
        progress(sweep, len(sweep.rows()), arguments.json),
    ):
        compile_plan(sweep)
    found = plan(sweep.outcomes, prices)
    reply(arguments.json, lambda: plan_answer(found, asked(arguments, arguments.to or "-")), lines(found))
    complain_of(one.outcome for one in found.candidates)
    if stop.is_set():
        complain("stopped: the plan is that of the finished candidates")
        return STOPPED
    return _status(found)


def _add_knobs(arguments: argparse.Namespace) -> None:
    """Add the knob of the batch, and choices that a user left open, as if they had been asked for."""
    defaults, batch = asked_step(arguments).defaults, arguments.global_batch
    if batch is not None:
        if batch < 1:
            raise InputError("No batch", f"--global-batch {batch}", "give a number of at least 1")
        arguments.fixed = [*arguments.fixed, *knobs_of_batch(defaults, arguments.fixed, arguments.on, batch)]
    given = [text.partition("=")[0] for text in (*arguments.vary, *arguments.fixed)]
    arguments.vary = [*arguments.vary, *proposed_knobs(defaults, given, batch)]


def _show_stored(arguments: argparse.Namespace, prices: dict[str, float]) -> int:
    given = {"--vary": arguments.vary, "--to": arguments.to, "--global-batch": arguments.global_batch}
    if compiling := [option for option, value in given.items() if value]:
        raise InputError("Nothing to compile", compiling[0], "give FILE.py:FUNCTION in place of the logdir")
    records = records_of_path(arguments.step)
    knobs = {text.partition("=")[0]: text.partition("=")[2] for text in arguments.fixed}
    found = plan(planned_candidates(records, arguments.on, knobs, arguments.step), prices)
    if not arguments.json:
        print_problems(problems_json(records.problems))
    reply(arguments.json, lambda: plan_answer(found, asked(arguments, arguments.step), records.problems), lines(found))
    return _status(found)


def _status(found: Plan) -> int:
    if all(one.outcome.reserved_bytes is None for one in found.candidates):
        return 2
    return 0 if found.fastest is not None else 1


def _prices(text: str) -> dict[str, float]:
    """Parse --price. InputError for an unknown chip, or where there is no number."""
    found = {}
    for part in filter(None, text.split(",")):
        chip, _, price = part.partition("=")
        try:
            found[chip_of(chip)] = float(price)
        except ValueError:
            raise InputError("No price", f"--price {part}", "write CHIP=PRICE, as in v5e=1.2") from None
    return found
