"""The command `xprof`."""

from __future__ import annotations

import argparse
import os

from tb_memplugin.hosts import xprof_server
from tb_memplugin.source_files import VARIABLE, checked_roots


def run(arguments: argparse.Namespace) -> int:
    # XProf's own code makes the app, so the folders reach it through the environment.
    named = [*checked_roots(arguments.source_root), os.environ.get(VARIABLE, "")]
    os.environ[VARIABLE] = os.pathsep.join(filter(None, named))
    ports = arguments.port, arguments.bind_all, arguments.grpc_port
    return xprof_server.serve(arguments.logdir, *ports, arguments.allowed_host, arguments.rest)
