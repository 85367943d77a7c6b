"""Listening sockets, their URL, and the names that a server answers to.

The names are checked against DNS rebinding. A page of evil.example may let its name resolve to 127.0.0.1 after it was
loaded. The browser then takes our server for evil.example's and lets the page read everything, but still sends that
name in the `Host` header.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import re
import socket
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from werkzeug.wrappers import Response

from tb_memplugin.errors import InputError
from tb_memplugin.hosts.http_messages import error_response

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

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
        # Python adds the address to the text of the error.
        reason = str(error.strerror).partition(" (")[0] if isinstance(error, OSError) else "not the name of a machine"
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
    both = address[0] == "::" and socket.has_dualstack_ipv6()  # the wildcard of IPv6 includes IPv4
    listening = socket.create_server(address, family=family, backlog=BACKLOG, dualstack_ipv6=both)
    listening.setblocking(False)
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


ANY = "*"
VARIABLE = "TB_MEMPLUGIN_ALLOWED_HOSTS"  # for hosts whose command line is not ours
HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\[\]:/@\s,]+)(?::\d*)?")

Accepts = Callable[["WSGIEnvironment"], bool]


class HostNames:
    """The names of one server: those it was told, and those of the address that it listens on.

    On loopback: localhost and loopback addresses. On others: also any other IP address, and this machine's names, since
    rebinding needs a name of the attacker's.
    """

    def __init__(self, host: str, allowed: Collection[str] = ()) -> None:
        self._local = is_loopback(host)
        named = (name.strip() for name in os.environ.get(VARIABLE, "").split(","))
        self._allowed = {name.lower().rstrip(".") for name in (*allowed, *filter(None, named))}
        if host not in WILDCARDS:
            self._allowed.add(host.lower())

    def accepts(self, environ: WSGIEnvironment) -> bool:
        """Return whether a request is for this server. One without the header does not come from a browser."""
        header = environ.get("HTTP_HOST")
        name = host_name(header) if header else None
        if name is None:
            return not header
        # `.example.com` stands for the domain and all below it.
        below = any(each.startswith(".") and f".{name}".endswith(each) for each in self._allowed)
        if below or is_loopback(name) or name in self._allowed or ANY in self._allowed:
            return True
        return not self._local and (is_address(name) or name in machine_names())


class ProxiedNames(HostNames):
    """The names of a loopback server that users also reach through proxies whose names it cannot know.

    Colab, JupyterHub and code servers pass on their own name, over HTTPS. Browsers send `Sec-Fetch-Site` over HTTPS and
    to localhost only, and no script can set it. A rebound name has no certificate, so its requests never have it.
    """

    def __init__(self) -> None:
        super().__init__("localhost")

    def accepts(self, environ: WSGIEnvironment) -> bool:
        name = host_name(environ.get("HTTP_HOST", ""))
        return super().accepts(environ) or "HTTP_SEC_FETCH_SITE" in environ or (name is not None and is_address(name))


def checked(app: WSGIApplication, accepts: Accepts, remedy: str) -> WSGIApplication:
    """Refuse requests that are for another server; `remedy` names the option, with {name} for the requested name."""

    def check(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if accepts(environ):
            return app(environ, start_response)
        name = environ.get("HTTP_HOST", "")
        error = InputError("Unknown host name", name, remedy.format(name=host_name(name) or "NAME"))
        if "/api/" in environ.get("PATH_INFO", ""):
            response = error_response(403, error)
        else:
            response = Response(f"{error}\n", 403, content_type="text/plain; charset=utf-8")
        response.headers["X-Content-Type-Options"] = "nosniff"
        return response(environ, start_response)

    return check


def host_name(header: str) -> str | None:
    """Return the name in a `Host` header, in lower case and without brackets; None where it is malformed."""
    match = HOST.fullmatch(header)
    return match[1].strip("[]").lower().rstrip(".") if match else None


def is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


@cache
def machine_names() -> frozenset[str]:
    """Return this machine's names, also as other machines of its network know it."""
    name = socket.gethostname().lower()
    short = name.partition(".")[0]
    return frozenset({name, short, f"{short}.local", socket.getfqdn().lower()} - {""})
