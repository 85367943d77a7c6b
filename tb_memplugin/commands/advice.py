"""The command `advice`."""

from __future__ import annotations

import argparse

from tb_memplugin.commands.output import asked, chosen_recording
from tb_memplugin.commands.stored_fits import outcomes_beside
from tb_memplugin.commands.terminal import print_answer, show
from tb_memplugin.questions.asking.selectors import choose_with_allocations
from tb_memplugin.questions.recording.advice import advice, advice_answer, lines


def run(arguments: argparse.Namespace) -> None:
    chosen, _ = chosen_recording(arguments, choose_with_allocations)
    outcomes = outcomes_beside(chosen)
    if arguments.json:
        print_answer(advice_answer(chosen, asked(arguments, arguments.path), outcomes))
        return
    show(*(list(lines(advice(chosen, outcomes))) or ["No known change would lower this peak."]))
