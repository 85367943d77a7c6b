"""Print the JSON Schema of what a command prints with --json.

examples:
  tb-memplugin schema
  tb-memplugin schema explain > explain.schema.json
"""

from __future__ import annotations

import argparse

from tb_memplugin import schemas
from tb_memplugin.commands.output import print_answer
from tb_memplugin.commands.terminal import JSON, show
from tb_memplugin.questions.asking.asked import SCHEMA_VERSION
from tb_memplugin.questions.asking.files import SchemasAnswerJson


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name", metavar="COMMAND", nargs="?", help="a command, or a kind of its answer; without it, list the names"
    )
    parser.add_argument("--json", action="store_true", help=JSON)


def run(arguments: argparse.Namespace) -> int:
    if arguments.name is not None:
        show(schemas.text_of(arguments.name).rstrip("\n"))
    elif arguments.json:
        answer: SchemasAnswerJson = {"schema_version": SCHEMA_VERSION, "schemas": schemas.names(), "next": []}
        print_answer(answer)
    else:
        show("\n".join(schemas.names()))
    return 0
