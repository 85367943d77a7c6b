"""The Model Context Protocol on standard input and output. Each call runs in a thread, beside the protocol."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterable, Callable, Mapping
from functools import partial
from threading import Event
from typing import Any

import anyio
import fastjsonschema
from anyio.abc import ObjectSendStream
from mcp import MCPError
from mcp.server import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from tb_memplugin import __version__
from tb_memplugin.catalog.reading import Progress
from tb_memplugin.errors import InputError, abandoned_when
from tb_memplugin.hosts.mcp.reader import LogdirReader
from tb_memplugin.hosts.mcp.tools import BY_NAME, DATA, McpTool
from tb_memplugin.questions.asking.asked import error_answer, failed
from tb_memplugin.sizes import bytes_text

MAX_CALLS = 4  # at a time; others wait
MAX_ANSWER_BYTES = 256 << 10
MAX_MESSAGE = 200  # characters about wrong arguments
PROGRESS_SECONDS = 0.5

INSTRUCTIONS = f"""\
Answers where the memory of TPU and GPU programs went, from the profiles of one logdir. Read-only.
Ask `summary` first, then `explain` or `buffers` with an id from it, `advice` for changes, `fit` for what fits a chip,
and `compare` for what a change did. `fleet` and `trend` are about jobs with many hosts, `check` about budgets.
Sizes are in bytes, times in nanoseconds, shares between 0 and 1.
{DATA}"""

Context = ServerRequestContext[Any]


def serve(root: str) -> None:
    """Answer about a logdir until standard input ends. InputError where it cannot be opened."""
    anyio.run(_serve, LogdirReader(root))


async def _serve(reader: LogdirReader) -> None:
    server = server_of(reader)
    send, repaired = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    async with stdio_server() as (received, sent), anyio.create_task_group() as group:
        group.start_soon(_repair, received, send)
        await server.run(repaired, sent, server.create_initialization_options())


async def _repair(received: AsyncIterable[Any], send: ObjectSendStream[Any]) -> None:
    """Pass messages on. One with half of a surrogate pair, which mcp cannot read, would get no reply."""
    async with send:
        async for message in received:
            await send.send(_readable(message) if isinstance(message, ValidationError) else message)


def _readable(error: ValidationError) -> SessionMessage | Exception:
    try:
        parsed = json.loads(error.errors()[0]["input"])
        text = json.dumps(parsed, ensure_ascii=False).encode(errors="replace")
        return SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
    except (ValueError, TypeError, LookupError, RecursionError):
        return error


def server_of(reader: LogdirReader) -> Server[Any]:
    """Return a server of the tools, for any transport."""
    calls = anyio.CapacityLimiter(MAX_CALLS)

    async def list_tools(context: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[_listed(tool) for tool in BY_NAME.values()])

    async def call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult:
        if (tool := BY_NAME.get(params.name)) is None:
            raise MCPError(INVALID_PARAMS, f"No such tool: {params.name[:100]!r}; there are {', '.join(BY_NAME)}")
        async with anyio.create_task_group() as group:
            group.start_soon(_report, context, reader.catalog.progress)
            is_over = Event()
            calling = partial(call, reader, tool, params.arguments or {}, is_over.is_set)
            try:  # a call that the client cancels leaves its place to another at once, and its reader ends soon
                result = await anyio.to_thread.run_sync(calling, abandon_on_cancel=True, limiter=calls)
            finally:
                is_over.set()
            group.cancel_scope.cancel()
        return result

    return Server(
        "tb-memplugin",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _listed(tool: McpTool) -> Tool:
    return Tool(
        name=tool.name,
        title=tool.title,
        description=f"{tool.description} {DATA}",
        input_schema=tool.input_schema,
        annotations=ToolAnnotations(
            read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
        ),
    )


def call(
    reader: LogdirReader, tool: McpTool, arguments: Mapping[str, Any], is_abandoned: Callable[[], bool] = bool
) -> CallToolResult:
    """Return the answer of a tool, or an error that says what happened, where, and what to do."""
    try:
        _check(tool, arguments)
        # JSON Schema takes 5.0 for an integer.
        whole = {key: int(value) for key, value in arguments.items() if isinstance(value, float) and value.is_integer()}
        with abandoned_when(is_abandoned):
            answer = tool.call(reader, {**arguments, **whole})
        if (size := len(_text(answer))) > MAX_ANSWER_BYTES:
            what = f"The answer has {bytes_text(size)}, more than {bytes_text(MAX_ANSWER_BYTES)}"
            raise InputError(what, tool.name, "ask for fewer items with `top`")
        return _result(answer)
    except (InputError, MemoryError) as error:
        return _result(error_answer(error), is_error=True)
    except Exception as error:
        logging.getLogger(__name__).warning("The tool %s failed", tool.name, exc_info=error)
        what, remedy = f"Unexpected failure: {type(error).__name__}", "report it, with the server's log"
        return _result(failed("internal", what, tool.name, remedy), is_error=True)


def _check(tool: McpTool, arguments: Mapping[str, Any]) -> None:
    try:
        fastjsonschema.validate(tool.input_schema, dict(arguments), use_default=False)
    except fastjsonschema.JsonSchemaValueException as wrong:
        where = "/".join(wrong.path[1:]) or tool.name
        message = wrong.message.removeprefix("data.")[:MAX_MESSAGE]
        raise InputError("Wrong arguments", where, f"{message}; see the schema of the tool") from None


def _result(answer: Mapping[str, Any], is_error: bool = False) -> CallToolResult:
    """Return an answer once, as text: an agent would read it twice if it were structured content too."""
    return CallToolResult(content=[TextContent(text=_text(answer))], is_error=is_error)


def _text(answer: Mapping[str, Any]) -> str:
    """Return JSON in ASCII, so that no character of a name is invisible."""
    return json.dumps(answer, separators=(",", ":"), allow_nan=False)


async def _report(context: Context, progress: Progress) -> None:
    """Report the bytes that are read, while a call takes long. Clients that did not ask for it get nothing."""
    last = 0
    while True:
        await anyio.sleep(PROGRESS_SECONDS)
        now = progress.of_all()
        if now.read > last:
            last = now.read
            text = f"read {bytes_text(now.read)} of {bytes_text(now.total)}"
            await context.session.report_progress(now.read, now.total, text)
