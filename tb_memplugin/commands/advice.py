"""The command `advice`."""

from __future__ import annotations

import argparse

from tb_memplugin.commands.output import asked, chosen_recording
from tb_memplugin.commands.terminal import print_answer, printable
from tb_memplugin.questions.asking.selectors import choose_with_allocations
from tb_memplugin.questions.recording.advice import advice_answer as advice
from tb_memplugin.questions.recording.advice import advice_lines


def run(arguments: argparse.Namespace) -> int:
    chosen, _ = chosen_recording(arguments, choose_with_allocations)
    if arguments.json:
        print_answer(advice(chosen, asked(arguments, arguments.path)))
        return 0
    lines = list(advice_lines(chosen)) or ["No known change would lower this peak."]
    print("\n".join(map(printable, lines)))
    return 0
