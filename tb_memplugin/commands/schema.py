"""Print the JSON Schema of what a command prints with --json.

examples:
  tb-memplugin schema
  tb-memplugin schema explain > explain.schema.json
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from tb_memplugin.commands.json_output import print_answer
from tb_memplugin.commands.streams import show
from tb_memplugin.commands.terminal import JSON

if TYPE_CHECKING:
    from tb_memplugin.views.answers.files import SchemasAnswerJson


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name", metavar="COMMAND", nargs="?", help="a command, or a kind of its answer; without it, list the names"
    )
    parser.add_argument("--json", action="store_true", help=JSON)


def run(arguments: argparse.Namespace) -> int:
    from tb_memplugin import schemas

    if arguments.name is not None:
        show(schemas.text_of(arguments.name).rstrip("\n"))
    elif arguments.json:
        from tb_memplugin.views.answers.asked import SCHEMA_VERSION

        answer: SchemasAnswerJson = {"schema_version": SCHEMA_VERSION, "schemas": schemas.names(), "next": []}
        print_answer(answer)
    else:
        show("\n".join(schemas.names()))
    return 0
