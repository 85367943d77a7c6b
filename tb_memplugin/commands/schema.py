"""The command `schema`."""

from __future__ import annotations

import argparse

from tb_memplugin import schemas
from tb_memplugin.commands.support.terminal import print_answer, show
from tb_memplugin.questions.asking.asked import SCHEMA_VERSION
from tb_memplugin.questions.asking.files import SchemasAnswerJson


def run(arguments: argparse.Namespace) -> None:
    if arguments.name is not None:
        show(*schemas.text_of(arguments.name).rstrip("\n").split("\n"))
    elif arguments.json:
        answer: SchemasAnswerJson = {"schema_version": SCHEMA_VERSION, "schemas": schemas.names(), "next": []}
        print_answer(answer)
    else:
        show(*schemas.names())
