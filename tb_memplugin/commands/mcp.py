"""Answer questions of a coding agent about a logdir, over the Model Context Protocol.

Serves six tools on standard input and output: summary, explain, buffers,
compare, advice and fit. They read the logdir, and write and run nothing. An
agent starts this command itself; docs/agents.md has its configuration.

example:
  tb-memplugin mcp /tmp/xprof
"""

from __future__ import annotations

import argparse
import sys

from tb_memplugin.errors import InputError


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "logdir", metavar="LOGDIR", help="folder with profiles, or a remote URL such as gs://bucket/run"
    )


def run(arguments: argparse.Namespace) -> int:
    if sys.stdin is None:  # closed by the shell
        raise InputError("Nothing to answer", "standard input", "let an agent start the command; see docs/agents.md")
    try:
        from tb_memplugin.hosts.mcp import server
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("tb_memplugin"):
            raise
        remedy = "pip install 'tb-memplugin[mcp]'"
        raise InputError(f"The package {error.name} is not installed", "tb-memplugin mcp", remedy) from None
    server.serve(arguments.logdir)
    return 0
