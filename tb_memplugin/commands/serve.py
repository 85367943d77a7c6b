"""The command `serve`."""

from __future__ import annotations

import argparse

from tb_memplugin.hosts import standalone


def run(arguments: argparse.Namespace) -> None:
    standalone.serve(
        arguments.logdir,
        arguments.host,
        arguments.port,
        arguments.open,
        arguments.allowed_host,
        arguments.source_root,
        arguments.in_notebook,
    )
