"""Start XProf with our Memory Viewer and Memory Profile in place of its own.

example:
  tb-memplugin xprof --logdir /tmp/xprof
"""

from __future__ import annotations

import argparse


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--logdir", required=True, metavar="DIR", help="folder with profiles")
    parser.add_argument("--port", type=int, default=8791, help="port to listen on (default: %(default)s)")
    parser.epilog = "XProf's own options, such as --grpc_port, may follow; `xprof --help` lists them."
    parser.set_defaults(accepts_unknown=True)


def run(arguments: argparse.Namespace) -> int:
    from tb_memplugin.hosts import xprof

    return xprof.serve(arguments.logdir, arguments.port, arguments.rest)
