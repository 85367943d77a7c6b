"""Attempts at what the tool keeps or is sent beside profiles: caches, baselines, kernels, uploads, MCP messages."""

from __future__ import annotations

import json
import os
import tempfile
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import support.without_iris  # noqa: F401  # before mcp, which imports jsonschema
from fuzz.attempts.folders import FAST
from mcp_types import jsonrpc_message_adapter
from pydantic import ValidationError
from support.mcp_client import text_of
from support.servers import DEMO

from tb_memplugin.catalog.uploads import MAX_UPLOAD_BYTES, PastedTexts, Uploads
from tb_memplugin.errors import InputError
from tb_memplugin.fit.cache import Cache
from tb_memplugin.fit.sweep import write_program
from tb_memplugin.fleet.cache import FILE, SummaryCache
from tb_memplugin.hosts.mcp import server as mcp_server
from tb_memplugin.hosts.mcp.reader import LogdirReader
from tb_memplugin.hosts.mcp.tools import BY_NAME
from tb_memplugin.logdir import HostFile
from tb_memplugin.model.fit import Candidate
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.compare.baseline import baseline_check
from tb_memplugin.questions.compare.baseline_file import read_baseline
from tb_memplugin.readers import open_file
from tb_memplugin.readers.common.budget import ReadBudget
from tb_memplugin.readers.hlo.kernels.windows import windows

KEY = "ab" * 32
SHAPES = ("f32[8,128]{1,0}", "bf16[1024,1024]{1,0:T(8,128)}")


@contextmanager
def empty_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=FAST if os.path.isdir(FAST) else None) as name:
        yield Path(name)


def attempt_kernel(data: bytes, everything: bool) -> bool:
    """Read the windows of a Pallas kernel from its bytecode."""
    config = b'"custom_call_config":{"body":"' + b64encode(data) + b'"'
    try:
        found = windows(config, SHAPES, SHAPES[0], ReadBudget(config, "/logs/x"))
    except InputError as error:
        assert "/logs/x" in str(error), f"the error does not name the file: {error}"
        return False
    assert all(buffer.bytes >= 0 for buffer in found)
    return bool(found)


@cache
def programs() -> list[Recording]:
    [path] = (DEMO / "h100_train_step").glob("*.hlo.pb.gz")
    return [one for part in open_file(path.read_bytes(), str(path), run="run") for one in part.read()]


def attempt_baseline(data: bytes, everything: bool) -> bool:
    """Compare a program with a baseline."""
    with empty_folder() as below:
        path = below / "memory.json"
        path.write_bytes(data)
        try:
            before = read_baseline(str(path))
        except InputError as error:
            assert str(path) in str(error), f"the error does not name the file: {error}"
            return False
    baseline_check("memory.json", before.recordings, programs(), before.tolerance)
    return True


def attempt_fit_cache(data: bytes, everything: bool) -> bool:
    """Find a program in the cache of `fit`, and write it to a run. Nothing appears beside that."""
    with empty_folder() as below:
        stored = Cache(below / "cache")
        path = stored.folder / KEY[:2] / f"{KEY}.program"
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
        if (found := stored.get(KEY, Candidate("a.py:f", "v5e:1x1"))) is None:
            return False
        run = below / "logdir" / "run"
        write_program(found.files, run)
        beside = [path for path in below.glob("*/*") if path.parent.name != "cache" and path != run]
        assert {path.name for path in below.iterdir()} <= {"cache", "logdir"} and not beside
        return True


def attempt_fleet_cache(data: bytes, everything: bool) -> bool:
    """Look up a file in the cache of `fleet`, which never raises, and store nothing in a database of others."""
    with empty_folder() as below:
        (below / FILE).write_bytes(data)
        stored = SummaryCache(below)
        found = stored.files([HostFile("/logs/a.xplane.pb", "a", 10, "1")])
        stored.growths(["x"])
        stored.put([], [])
        return bool(found) or stored.content().files > 0


def attempt_uploads(data: bytes, everything: bool) -> bool:
    """Send pieces of files: an input is a list of [key, name, size, position, piece]."""
    try:
        steps = json.loads(data)
    except (ValueError, RecursionError):
        return False
    uploads, texts, complete = Uploads(), PastedTexts(), False
    for step in steps if isinstance(steps, list) else []:
        match step:
            case [str(key), str(name), int(size), int(at), str(piece)] if type(size) is int and 0 <= size < 1 << 62:
                try:
                    done, content, left_out = uploads.add(key, name, size, at, piece.encode(errors="replace"))
                    assert 0 <= done <= size
                    if content is not None:
                        assert len(content) <= MAX_UPLOAD_BYTES and len(content) + left_out >= size
                        texts.add_file(name, content)
                        complete = True
                except InputError as error:
                    assert error.what and error.remedy, f"the error lacks a part: {error!r}"
    return complete


@cache
def reader() -> LogdirReader:
    return LogdirReader(str(DEMO / "device_profile_leak"))


def attempt_mcp(data: bytes, everything: bool) -> bool:
    """Answer a message, as the server does once it has read it; one that cannot be read is passed on as an error."""
    try:
        message = jsonrpc_message_adapter.validate_json(data, by_name=False)
    except ValidationError as error:
        mcp_server._readable(error)
        return False
    params = getattr(message, "params", None)
    name, arguments = (params or {}).get("name"), (params or {}).get("arguments")
    if not isinstance(name, str) or name not in BY_NAME or not isinstance(arguments, dict):
        return False
    result = mcp_server.call(reader(), BY_NAME[name], arguments)
    text = text_of(result)
    assert len(text) <= mcp_server.MAX_ANSWER_BYTES
    if result.is_error:
        assert json.loads(text)["error"]["kind"] != "internal", text
    return not result.is_error
