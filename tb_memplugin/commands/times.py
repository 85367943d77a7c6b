"""The command `times`."""

from __future__ import annotations

import argparse

from tb_memplugin.commands.support.output import asked, chosen_recording
from tb_memplugin.commands.support.terminal import reply
from tb_memplugin.questions.asking.selectors import choose_main_program
from tb_memplugin.questions.recording.times import lines, times_answer


def run(arguments: argparse.Namespace) -> None:
    chosen, _ = chosen_recording(arguments, choose_main_program)
    found = times_answer(chosen, asked(arguments, arguments.path))
    reply(arguments.json, lambda: found, lines(found))
