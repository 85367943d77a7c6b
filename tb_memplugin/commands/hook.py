"""Install, remove or check the hook that adds our pages to the `xprof` command.

The hook affects the plain `xprof` command of this Python environment only.

example:
  tb-memplugin hook install
"""

from __future__ import annotations

import argparse

from tb_memplugin.commands.output import json_options, print_answer
from tb_memplugin.questions.asking.asked import SCHEMA_VERSION
from tb_memplugin.questions.asking.files import HookAnswerJson


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=["install", "status", "remove"], help="what to do with the hook")
    json_options(parser)


def run(arguments: argparse.Namespace) -> int:
    from tb_memplugin.hosts import hook

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
    return 0
