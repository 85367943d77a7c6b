"""The page, in XProf: its server, with our Memory Viewer in place of its own."""

from __future__ import annotations

import argparse


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--logdir", required=True, help="folder with profiles")
    parser.add_argument("--port", type=int, default=8791, help="port of the page (default: %(default)s)")
    parser.epilog = "Further arguments go to XProf's server, --grpc_port for one; `xprof --help` lists them."
    parser.set_defaults(passes_on=True)


def run(arguments: argparse.Namespace) -> int:
    from tb_memplugin.hosts import xprof

    return xprof.serve(arguments.logdir, arguments.port, arguments.rest)
