"""XProf as a process of ours: its app on our web server, on loopback, without its worker service.

XProf 2.24 listens on all interfaces, and so does its worker service (gRPC), which has no option for an address. XProf's
tools give the same answers without the service, as long as no addresses of workers are set. So it is started only where
other machines are to reach it, with --bind-all.
"""

from __future__ import annotations

import inspect
import os
import socket
import sys
from collections.abc import Collection, Sequence
from typing import Any

from tb_memplugin import logdir
from tb_memplugin.errors import InputError
from tb_memplugin.hosts.serving.addresses import LOOPBACK, HostNames, checked, free_port, is_free, listen, url_of
from tb_memplugin.hosts.serving.server import serve as serve_app
from tb_memplugin.hosts.standalone import ALLOW
from tb_memplugin.hosts.xprof import install

EVERYWHERE = "::" if socket.has_ipv6 else "0.0.0.0"
WORKERS = "--worker_service_address"


def serve(
    root: str, port: int, everywhere: bool, grpc_port: int | None, allowed: Collection[str], arguments: Sequence[str]
) -> int:
    """Run `xprof --logdir=root arguments...` with our page in it, until interrupted.

    `everywhere`: on all interfaces, with the worker service at `grpc_port`; None and 0 pick a free one.
    `allowed`: other names that it answers to.
    """
    try:
        from xprof import server
    except ImportError as error:
        raise InputError(
            "XProf is not installed", str(error), "pip install 'tb-memplugin[xprof]', or use tb-memplugin serve"
        ) from error
    if not logdir.is_remote(root) and not os.path.isdir(os.path.expanduser(root)):
        raise InputError("Cannot open the logdir", root, "the folder does not exist")
    install(server)
    if not _has_known_server(server):
        print("warning: this XProf listens on all interfaces; tb-memplugin cannot change that", file=sys.stderr)
        print(f"tb-memplugin in XProf serves {root} at http://localhost:{port}/ (Ctrl+C ends it)", flush=True)
        status: int = server.main(["--logdir", root, "--port", str(port), *arguments])
        return status
    # XProf would silently share the port of another worker service.
    if everywhere and grpc_port and not is_free(grpc_port):
        raise InputError("Cannot listen", f"gRPC port {grpc_port}", "choose another --grpc_port, or omit it")
    grpc_port = grpc_port or free_port()
    listening = listen([EVERYWHERE] if everywhere else LOOPBACK, port)
    port = listening[0].getsockname()[1]

    def run_server(plugin: Any, host: str, port: int) -> None:
        app, own = server.make_wsgi_app(plugin), EVERYWHERE if everywhere else "localhost"
        names, url = HostNames(own, allowed), url_of(own, listening)

        def ready() -> None:
            print(f"tb-memplugin in XProf serves {root} at {url} (Ctrl+C ends it)", flush=True)
            if everywhere:
                print(f"All interfaces: port {port}, and port {grpc_port} of XProf's worker service (gRPC)", flush=True)

        serve_app(checked(app, names.accepts, ALLOW), listening, ready, app.reads)

    server.run_server = run_server
    if not everywhere:
        _without_worker_service(server, any(argument.startswith(WORKERS) for argument in arguments))
    status = server.main(["--logdir", root, "--port", str(port), "--grpc_port", str(grpc_port), *arguments])
    return status


def _has_known_server(server: Any) -> bool:
    """Return whether this version of XProf starts its servers through the functions that we replace."""
    run = getattr(server, "run_server", None)
    native = getattr(server, "_pywrap_profiler_plugin", None)
    known = run is not None and list(inspect.signature(run).parameters) == ["plugin", "host", "port"]
    return known and all(callable(getattr(native, name, None)) for name in ("initialize_stubs", "start_grpc_server"))


def _without_worker_service(server: Any, has_workers: bool) -> None:
    """Keep XProf from starting its worker service, and from using it; workers elsewhere stay in use."""
    stock = server._pywrap_profiler_plugin

    class Native:
        def __getattr__(self, name: str) -> Any:
            return getattr(stock, name)

        def start_grpc_server(self, port: int, max_concurrent_requests: int) -> None: ...

        def initialize_stubs(self, addresses: str) -> None:
            if has_workers:
                stock.initialize_stubs(addresses)

    server._pywrap_profiler_plugin = Native()
