"""List changes that lower the peak, the largest saving first, with the code to write.

Each change is simulated on its own; savings are not additive. Of a program that does not fit, the smallest set of
changes with which it does comes first. What `tb-memplugin fit --try` compiled replaces the estimate.

examples:
  tb-memplugin advice /tmp/xprof
  tb-memplugin advice /tmp/xprof --recording jit_train_step --json
"""

from __future__ import annotations

import argparse

from tb_memplugin.commands.output import (
    asked,
    chosen_recording,
    json_options,
    outcomes_beside,
    print_answer,
    recording_options,
)
from tb_memplugin.commands.terminal import printable
from tb_memplugin.questions.asking.selectors import choose_with_allocations
from tb_memplugin.questions.recording.advice import advice, advice_answer, lines


def run(arguments: argparse.Namespace) -> int:
    chosen, _ = chosen_recording(arguments, choose_with_allocations)
    outcomes = outcomes_beside(chosen)
    if arguments.json:
        print_answer(advice_answer(chosen, asked(arguments, arguments.path), outcomes))
        return 0
    found = list(lines(advice(chosen, outcomes))) or ["No known change would lower this peak."]
    print("\n".join(map(printable, found)))
    return 0
