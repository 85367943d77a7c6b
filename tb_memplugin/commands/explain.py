"""The command `explain`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from tb_memplugin.commands.output import asked, chosen_recording
from tb_memplugin.commands.stored_fits import outcomes_beside
from tb_memplugin.commands.terminal import print_answer, show
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.explain.explain import explain
from tb_memplugin.questions.explain.explain_answer import explain_answer
from tb_memplugin.questions.explain.explain_text import lines
from tb_memplugin.questions.oom.failure import programs_of
from tb_memplugin.questions.recording.advice import advice, fits_with_text


def run(arguments: argparse.Namespace) -> None:
    chosen, listing = chosen_recording(arguments)
    recordings, outcomes = listing.recordings, outcomes_beside(chosen, arguments.path)
    if arguments.json:
        problems = listing.problems if arguments.recording is None else ()
        question = asked(arguments, arguments.path)
        print_answer(explain_answer(chosen, recordings, question, arguments.at, problems, outcomes))
        return
    found = explain(chosen, arguments.at, recordings, outcomes)
    show(*lines(found), *_hints(chosen, recordings, arguments.path))


def _hints(chosen: Recording, recordings: Sequence[Recording], path: str) -> Iterator[str]:
    """Point from a compiler's error to its program and to what makes it fit, and from a program to its run."""
    for other in programs_of(chosen, recordings):
        yield ""
        yield f"The logdir contains {other.title}, with its buffers: --recording '{other.id}'"
        changes = advice(other, outcomes_beside(other, path))
        if changes["fits_with"] is not None:
            yield fits_with_text(changes)
    over_time = next((r for r in recordings if r.axis == "TIME" and r.run == chosen.run), None)
    if chosen.axis == "PROGRAM_ORDER" and over_time is not None:
        yield ""
        yield f"This run also has memory over time, which shows leaks: --recording '{over_time.id}'"
