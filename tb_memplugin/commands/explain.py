"""The command `explain`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from tb_memplugin.commands.support.output import asked, chosen_recording
from tb_memplugin.commands.support.stored_fits import outcomes_beside
from tb_memplugin.commands.support.terminal import print_answer, show
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.explain.explain import explain
from tb_memplugin.questions.explain.explain_answer import explain_answer
from tb_memplugin.questions.explain.explain_text import lines
from tb_memplugin.questions.oom.failed_program import programs_of


def run(arguments: argparse.Namespace) -> None:
    chosen, listing = chosen_recording(arguments)
    recordings = listing.recordings
    fitted = next(iter(programs_of(chosen, recordings)), chosen)  # of an error, the program that it is about
    outcomes = outcomes_beside(fitted, arguments.path)
    if arguments.json:
        problems = listing.problems if arguments.recording is None else ()
        question = asked(arguments, arguments.path)
        print_answer(explain_answer(chosen, recordings, question, arguments.at, problems, outcomes))
        return
    found = explain(chosen, arguments.at, recordings, outcomes)
    show(*lines(found), *_hints(chosen, recordings))


def _hints(chosen: Recording, recordings: Sequence[Recording]) -> Iterator[str]:
    """Point from a program to its run."""
    over_time = next((r for r in recordings if r.axis == "TIME" and r.run == chosen.run), None)
    if chosen.axis == "PROGRAM_ORDER" and over_time is not None:
        yield ""
        yield f"This run also has memory over time, which shows leaks: --recording '{over_time.id}'"
