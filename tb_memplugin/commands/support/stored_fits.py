"""Answers from what a logdir contains: candidates of earlier fits, or for the command `fit` a recording."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from tb_memplugin.catalog.fit_records import FitRecords, records_of_path
from tb_memplugin.commands.support.output import asked, chosen_recording, print_problems
from tb_memplugin.commands.support.terminal import reply
from tb_memplugin.errors import InputError
from tb_memplugin.logdir.names import parse_program
from tb_memplugin.model.fit import RECORD, Outcome
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.asked import bounded
from tb_memplugin.questions.asking.json_types import problems_json
from tb_memplugin.questions.asking.selectors import choose_main_memory
from tb_memplugin.questions.asking.text_table import align
from tb_memplugin.questions.fit.answer import FitAnswerJson, candidates, fit_answer, largest_values
from tb_memplugin.questions.fit.chips import chips_that_fit
from tb_memplugin.questions.fit.words import lines
from tb_memplugin.sizes import bytes_text

# Options of compiling, by their names as arguments.
COMPILING = {"vary": "--vary", "budget": "--budget", "prove": "--prove", "to": "--to", "tries": "--try"}


def outcomes_beside(recording: Recording, path: str) -> Sequence[Outcome]:
    """Return the candidates of the fit that a program or traced step here is one of, else those of a dump's path."""
    kind = recording.kind
    folders = Path(recording.source).parents if kind.has_program or kind.has_tensor_stacks else ()
    logdir = next((str(folder.parent) for folder in folders if (folder / RECORD).is_file()), None)
    if logdir is None and folders and parse_program(Path(recording.source).name):
        logdir = path
    return () if logdir is None else records_of_path(logdir).outcomes


def is_stored(step: str) -> bool:
    """Return whether the step of a command is a logdir, local or remote, or a file with recordings."""
    return (os.path.exists(step) and not step.endswith(".py")) or "://" in step


def show_stored(arguments: argparse.Namespace) -> int:
    """Print what fits among the candidates of a logdir, or the chips that fit a recording. Return the exit code.

    InputError where there are neither, and for options of compiling.
    """
    if compiling := [option for name, option in COMPILING.items() if getattr(arguments, name) not in (None, False, [])]:
        raise InputError("Nothing to compile", compiling[0], "give FILE.py:FUNCTION in place of the logdir")
    if arguments.recording is not None:
        return _show_chips(arguments)
    records = records_of_path(arguments.step)
    print_problems(problems_json(records.problems))
    knobs = {text.partition("=")[0]: text.partition("=")[2] for text in arguments.fixed}
    found = candidates(records, arguments.on, knobs, arguments.step)
    return _show_candidates(arguments, found, records) if found else _show_chips(arguments)


def _show_candidates(arguments: argparse.Namespace, outcomes: Sequence[Outcome], records: FitRecords) -> int:
    found = largest_values(outcomes)
    names = dict.fromkeys(name for one in found for name, _ in one.knobs)
    chosen = [name for name in names if len({dict(one.knobs).get(name) for one in found}) > 1]
    answer = partial(fit_answer, problems=records.problems, programs=records.programs)
    reply(arguments.json, lambda: answer(outcomes, found, asked(arguments, arguments.step)), lines(found, chosen))
    return 0 if all(one.largest is not None for one in found) else 1


def _show_chips(arguments: argparse.Namespace) -> int:
    """Print the chips that have room for a recording. Return 1 if one of those that were asked for has not."""
    arguments.path = arguments.step
    recording, _ = chosen_recording(arguments, choose_main_memory)
    question = asked(arguments, arguments.path)
    every = chips_that_fit(recording, question._replace(top=None), arguments.on)
    reply(arguments.json, lambda: bounded(every, question.top), _chip_lines(every))
    fitting = [chip["fits"] for chip in every["chips"]]
    return 0 if (all(fitting) if arguments.on else any(fitting)) else 1


def _chip_lines(answer: FitAnswerJson) -> Iterator[str]:
    needed = answer["recording"]
    yield f"{needed['id']} needs {bytes_text(needed['needed_bytes'])} ({needed['figure']}):"
    yield ""
    rows = [
        [chip["target"], "yes" if chip["fits"] else "no", bytes_text(chip["limit_bytes"]), _left(chip["left_bytes"])]
        for chip in answer["chips"]
    ]
    yield from align([["chip", "fits", "limit", "left"], *rows], 0)
    yield ""
    yield from answer["caveats"]


def _left(size: int) -> str:
    return bytes_text(size) if size >= 0 else f"{bytes_text(-size)} too much"
