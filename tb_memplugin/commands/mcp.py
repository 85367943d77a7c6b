"""The command `mcp`."""

from __future__ import annotations

import argparse
import sys

from tb_memplugin.errors import InputError


def run(arguments: argparse.Namespace) -> None:
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
