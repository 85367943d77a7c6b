"""The command `hook`."""

from __future__ import annotations

import argparse

from tb_memplugin.commands.terminal import print_answer
from tb_memplugin.hosts import hook
from tb_memplugin.questions.asking.asked import SCHEMA_VERSION
from tb_memplugin.questions.asking.files import HookAnswerJson


def run(arguments: argparse.Namespace) -> None:
    text: str = getattr(hook, arguments.action)()
    if arguments.json:
        answer: HookAnswerJson = {
            "schema_version": SCHEMA_VERSION,
            "action": arguments.action,
            "text": text,
            "next": [],
        }
        print_answer(answer)
    else:
        print(text)
