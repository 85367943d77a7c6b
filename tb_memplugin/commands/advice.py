"""List changes that lower the peak, with the code to write and the bytes that each saves.

Each change is simulated on its own; savings are not additive.

examples:
  tb-memplugin advice /tmp/xprof
  tb-memplugin advice /tmp/xprof --recording jit_train_step --json
"""

from __future__ import annotations

import argparse

from tb_memplugin.commands.output import asked, chosen_recording, json_options, print_answer, recording_options
from tb_memplugin.commands.terminal import printable
from tb_memplugin.questions.asking.selectors import choose_with_allocations
from tb_memplugin.questions.recording.advice import advice_answer as advice
from tb_memplugin.questions.recording.advice import advice_lines


def options(parser: argparse.ArgumentParser) -> None:
    recording_options(parser)
    json_options(parser)


def run(arguments: argparse.Namespace) -> int:
    chosen, _ = chosen_recording(arguments, choose_with_allocations)
    if arguments.json:
        print_answer(advice(chosen, asked(arguments, arguments.path)))
        return 0
    lines = list(advice_lines(chosen)) or ["No known change would lower this peak."]
    print("\n".join(map(printable, lines)))
    return 0
