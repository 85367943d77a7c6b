"""Install, remove or check the hook that adds our pages to the `xprof` command.

The hook affects the plain `xprof` command of this Python environment only.

example:
  tb-memplugin hook install
"""

from __future__ import annotations

import argparse


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=["install", "status", "remove"], help="what to do with the hook")


def run(arguments: argparse.Namespace) -> int:
    from tb_memplugin.hosts import hook

    print(getattr(hook, arguments.action)())
    return 0
