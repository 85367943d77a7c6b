"""Answers from the candidates of earlier fits, for the command `fit`."""

from __future__ import annotations

import argparse
import os

from tb_memplugin.commands.json_output import asked, print_answer
from tb_memplugin.commands.streams import show
from tb_memplugin.commands.terminal import print_problems, printable
from tb_memplugin.errors import InputError


def is_logdir(step: str) -> bool:
    """Return whether the step of a command is a logdir, local or remote, in place of a function."""
    return os.path.isdir(step) or "://" in step


def show_stored(arguments: argparse.Namespace) -> int:
    """Print what fits among the candidates of a logdir, and return the exit code. InputError where there is none."""
    from tb_memplugin.catalog import records_of_path
    from tb_memplugin.views.answers.fit import fit_answer, largest_values, with_knobs
    from tb_memplugin.views.shared.json_types import problems_json
    from tb_memplugin.views.terminal.fit import lines

    records = records_of_path(arguments.step)
    print_problems(problems_json(records.problems))
    wanted = dict(text.split("=", 1) if "=" in text else (text, "") for text in arguments.fixed)
    if arguments.on:
        wanted["target"] = arguments.on[0]
    outcomes = with_knobs(records.outcomes, wanted)
    if not outcomes:
        remedy = "`tb-memplugin fit FILE.py:FUNCTION --to LOGDIR` compiles some; without --set and --on, all are listed"
        raise InputError("No such candidates", arguments.step, remedy)
    found = largest_values(outcomes)
    if arguments.json:
        print_answer(fit_answer(outcomes, found, asked(arguments, arguments.step), problems=records.problems))
    else:
        names = dict.fromkeys(name for one in found for name, _ in one.knobs)
        chosen = [name for name in names if len({dict(one.knobs).get(name) for one in found}) > 1]
        show("\n".join(map(printable, lines(found, chosen))))
    return 0 if all(one.largest is not None for one in found) else 1
