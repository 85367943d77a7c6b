"""Listening sockets, and the URL at which a browser reaches them."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
from collections.abc import Sequence

from tb_memplugin.errors import InputError

MAX_PORT = 65535
LOOPBACK = ("127.0.0.1", "::1")
WILDCARDS = ("", "0.0.0.0", "::")
BACKLOG = 1024
# A machine without IPv6 may still resolve names to IPv6 addresses.
NO_SUCH_FAMILY = {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}


def listen(hosts: Sequence[str], port: int) -> list[socket.socket]:
    """Listen on all addresses of the hosts, at one port; 0 picks a free one. InputError where that is impossible."""
    where = f"{' and '.join(hosts)}:{port}"
    if not 0 <= port <= MAX_PORT:
        raise InputError("Cannot listen", where, f"choose a --port from 0 to {MAX_PORT}")
    listening: list[socket.socket] = []
    unavailable: OSError | None = None
    try:
        for family, address in _addresses(hosts, port):
            try:
                listening.append(_listen_at(family, (address[0], port, *address[2:])))
            except OSError as error:
                if error.errno not in NO_SUCH_FAMILY:
                    raise
                unavailable = error
                continue
            port = listening[0].getsockname()[1]
        if unavailable is not None and not listening:
            raise unavailable
    except (OSError, UnicodeError) as error:
        for opened in listening:
            opened.close()
        reason = error.strerror if isinstance(error, OSError) else "not the name of a machine"
        raise InputError("Cannot listen", where, f"choose another --port or --host ({reason})") from error
    return listening


def _addresses(hosts: Sequence[str], port: int) -> list[tuple[int, tuple[str, ...]]]:
    found = [
        (family, address)
        for host in hosts
        for family, _, _, _, address in socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP, flags=socket.AI_PASSIVE
        )
    ]
    return list(dict.fromkeys(found))  # type: ignore[arg-type]  # typeshed allows addresses of other families


def _listen_at(family: int, address: tuple[object, ...]) -> socket.socket:
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name == "posix":
            # A restarted server gets its port back at once. On Windows the option would allow two servers at one port.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            # The wildcard of IPv6 includes IPv4.
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(address[0] != "::"))
        listening.bind(address)
        listening.listen(BACKLOG)
        listening.setblocking(False)
    except BaseException:
        listening.close()
        raise
    return listening


def free_port() -> int:
    """Return a port that no program of this machine listens on."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        port: int = probe.getsockname()[1]
        return port


def is_free(port: int) -> bool:
    """Return whether a program can listen on a port on all interfaces."""
    with socket.socket() as probe:
        try:
            probe.bind(("", port))
        except (OSError, OverflowError):
            return False
        return True


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine as only its own programs reach it."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def url_of(host: str, listening: Sequence[socket.socket]) -> str:
    """Return the URL to open: at a host, or at this machine's name where the host is a wildcard."""
    name = socket.gethostname() if host in WILDCARDS else host
    port = listening[0].getsockname()[1]
    return f"http://[{name}]:{port}/" if ":" in name else f"http://{name}:{port}/"
