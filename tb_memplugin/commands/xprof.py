"""Start XProf with our Memory Viewer and Memory Profile in place of its own.

example:
  tb-memplugin xprof --logdir /tmp/xprof
"""

from __future__ import annotations

import argparse
import os

from tb_memplugin.commands.terminal import add_server_options
from tb_memplugin.source_files import VARIABLE, checked_roots


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--logdir", required=True, metavar="DIR", help="folder with profiles")
    parser.add_argument(
        "--port", type=int, default=8791, help="port to listen on; 0 picks a free one (default: %(default)s)"
    )
    parser.add_argument(
        "--bind-all",
        action="store_true",
        help="listen on all interfaces, also with XProf's worker service (default: this machine only, without it)",
    )
    parser.add_argument(
        "--grpc_port",
        "--grpc-port",
        type=int,
        metavar="PORT",
        help="port of XProf's worker service, with --bind-all (default: a free one)",
    )
    add_server_options(parser)
    parser.epilog = "XProf's own options, such as --src_prefix, may follow; `xprof --help` lists them."
    parser.set_defaults(accepts_unknown=True)


def run(arguments: argparse.Namespace) -> int:
    from tb_memplugin.hosts import xprof_server

    # XProf's own code makes the app, so the folders reach it through the environment.
    named = [*checked_roots(arguments.source_root), os.environ.get(VARIABLE, "")]
    os.environ[VARIABLE] = os.pathsep.join(filter(None, named))
    binding = xprof_server.Binding(
        arguments.port, arguments.bind_all, arguments.grpc_port, tuple(arguments.allowed_host)
    )
    return xprof_server.serve(arguments.logdir, binding, arguments.rest)
