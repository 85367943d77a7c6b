"""HTTP requests byte by byte, for what clients do wrong."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

GET = b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n"


def connect(url: str, timeout: float = 60) -> socket.socket:
    parts = urlsplit(url)
    return socket.create_connection((str(parts.hostname), parts.port), timeout)


def exchange(url: str, request: bytes, timeout: float = 60) -> bytes:
    """Send bytes, and return all that is sent back until the server closes the connection."""
    with connect(url, timeout) as client:
        client.sendall(request)
        return read_all(client)


def read_to(client: socket.socket, end: bytes) -> bytes:
    """Return all bytes until those of `end` arrive."""
    received = b""
    while not received.endswith(end):
        piece = client.recv(1 << 16)
        assert piece, received
        received += piece
    return received


def read_all(client: socket.socket) -> bytes:
    """Return all bytes until the server closes the connection; TimeoutError where it does not."""
    received = bytearray()
    try:
        while piece := client.recv(1 << 20):
            received += piece
    except ConnectionResetError:  # closed while it had not read everything
        pass
    return bytes(received)
