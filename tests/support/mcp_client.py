"""The official client of the Model Context Protocol, which starts the command as an agent does."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import CallToolResult, TextContent, Tool
from support.servers import BIN


class Asked:
    """A session with a server."""

    def __init__(self, portal: BlockingPortal, client: Client) -> None:
        self._portal, self._client = portal, client

    def tools(self) -> list[Tool]:
        return self._portal.call(self._client.list_tools).tools

    def call(self, tool: str, **arguments: Any) -> CallToolResult:
        return self.started(tool, **arguments).result()

    def started(self, tool: str, **arguments: Any) -> Future[CallToolResult]:
        return self._portal.start_task_soon(self._client.call_tool, tool, arguments)

    def answer(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return the answer of a call, which is sent once."""
        result = self.call(tool, **arguments)
        assert not result.is_error, text_of(result)
        assert result.structured_content is None
        found: dict[str, Any] = json.loads(text_of(result))
        return found

    def error(self, tool: str, **arguments: Any) -> str:
        """Return the error of a call: what happened, where, and what to do."""
        result = self.call(tool, **arguments)
        assert result.is_error
        error = json.loads(text_of(result))["error"]
        return ": ".join(error[key] for key in ("what", "where", "remedy"))


def text_of(result: CallToolResult) -> str:
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text


@contextmanager
def asking(logdir: Path) -> Iterator[Asked]:
    """Start `tb-memplugin mcp LOGDIR`, and yield a session with it."""
    command = StdioServerParameters(command=str(BIN / "tb-memplugin"), args=["mcp", str(logdir)], env=dict(os.environ))
    with start_blocking_portal() as portal:
        client = Client(stdio_client(command))
        with portal.wrap_async_context_manager(client):
            yield Asked(portal, client)
