"""Serve the page on its own web server.

example:
  tb-memplugin serve --logdir /tmp/xprof --open
"""

from __future__ import annotations

import argparse

from tb_memplugin.commands.terminal import add_server_options


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--logdir", required=True, metavar="DIR", help="folder with profiles, or a remote URL such as gs://bucket/run"
    )
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on (default: %(default)s, this machine only)",
    )
    parser.add_argument(
        "--port", type=int, default=6007, help="port to listen on; 0 picks a free one (default: %(default)s)"
    )
    add_server_options(parser)
    parser.add_argument("--open", action="store_true", help="open the page in a browser")
    # For `%memory` of notebooks: the page may be in a frame of a notebook, and the server ends with its input.
    parser.add_argument("--in-notebook", action="store_true", help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    from tb_memplugin.hosts import standalone

    standalone.serve(
        arguments.logdir,
        arguments.host,
        arguments.port,
        arguments.open,
        arguments.allowed_host,
        arguments.source_root,
        arguments.in_notebook,
    )
    return 0
