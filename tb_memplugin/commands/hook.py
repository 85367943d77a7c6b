"""Make the plain `xprof` command of this environment show our Memory Viewer, or not."""

from __future__ import annotations

import argparse


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=["install", "status", "remove"])


def run(arguments: argparse.Namespace) -> int:
    from tb_memplugin.hosts import hook

    print(getattr(hook, arguments.action)())
    return 0
