"""List changes that lower the peak, with the code to write and the bytes that each saves.

Each change is simulated on its own; savings are not additive.

examples:
  tb-memplugin advice /tmp/xprof
  tb-memplugin advice /tmp/xprof --recording jit_train_step --json
"""

from __future__ import annotations

import argparse

from tb_memplugin.commands.json_output import asked, json_options, print_answer
from tb_memplugin.commands.terminal import chosen_recording, printable, recording_options


def options(parser: argparse.ArgumentParser) -> None:
    recording_options(parser)
    json_options(parser)


def run(arguments: argparse.Namespace) -> int:
    from tb_memplugin.views.shared.selectors import choose_with_allocations

    chosen, _ = chosen_recording(arguments, choose_with_allocations)
    if arguments.json:
        from tb_memplugin.views.answers.advice import advice

        print_answer(advice(chosen, asked(arguments, arguments.path)))
        return 0
    from tb_memplugin.views.page.advice import advice_lines

    lines = list(advice_lines(chosen)) or ["No known change would lower this peak."]
    print("\n".join(map(printable, lines)))
    return 0
