"""The page, on its own."""

from __future__ import annotations

import argparse


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--logdir", required=True, help="folder with profiles, or a URL that fsspec reads")
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default: %(default)s, this machine only)"
    )
    parser.add_argument("--port", type=int, default=6007, help="port to listen on; 0 picks one (default: %(default)s)")
    parser.add_argument("--open", action="store_true", help="open the page in a browser")


def run(arguments: argparse.Namespace) -> int:
    from tb_memplugin.hosts import standalone

    standalone.serve(arguments.logdir, arguments.host, arguments.port, arguments.open)
    return 0
