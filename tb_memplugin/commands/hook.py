"""The command `hook`."""

from __future__ import annotations

import argparse

from tb_memplugin.commands.support.terminal import reply
from tb_memplugin.hosts import hook
from tb_memplugin.questions.asking.asked import SCHEMA_VERSION
from tb_memplugin.questions.asking.files import HookAnswerJson
from tb_memplugin.questions.records import record


def run(arguments: argparse.Namespace) -> None:
    text: str = getattr(hook, arguments.action)()
    found = record(HookAnswerJson, arguments, schema_version=SCHEMA_VERSION, text=text, next=[])
    reply(arguments.json, lambda: found, text.split("\n"))
