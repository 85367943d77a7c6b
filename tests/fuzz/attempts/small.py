"""Attempts at short inputs: regular expressions, records of fits, and names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache

from fuzz.attempts.folders import attempt_folder, pack
from fuzz.attempts.queries import known_endpoints
from support.servers import DEMO

from tb_memplugin.errors import InputError
from tb_memplugin.model.fit import outcome_json
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.endpoint import encoded
from tb_memplugin.questions.asking.inputs import Call
from tb_memplugin.questions.asking.source import FitOutcomes
from tb_memplugin.questions.export.report import report_source
from tb_memplugin.questions.fit import words as fit_text
from tb_memplugin.readers import open_file
from tb_memplugin.readers.fit_record import read_outcome

WHERE_USED = ("focus", "ignore", "hide")


@cache
def profile() -> Recording:
    path = DEMO / "device_profile" / "memory.prof"
    [recording] = open_file(path.read_bytes(), str(path), run="run", host="host")[0].read()
    return recording


def attempt_regex(data: bytes, everything: bool) -> bool:
    """Filter a call graph by an expression, as the page's fields do."""
    text = data.decode("utf-8", "replace")
    recording = profile()
    query: Mapping[str, str] = {
        "id": recording.id,
        "by": "function",
        "most": "20",
        WHERE_USED[len(data) % len(WHERE_USED)]: text,
    }
    source = report_source([recording], [recording])
    try:
        encoded(known_endpoints()["callgraph"].answer(Call(query, source)))
    except InputError as error:
        assert error.what and error.remedy, f"the error lacks a part: {error!r}"
        return False
    return True


def attempt_fit_record(data: bytes, everything: bool) -> bool:
    """Read a record, and show it on the page and in the terminal."""
    try:
        outcome = read_outcome(data, "/logs/fit.json")
    except InputError as error:
        assert "/logs/fit.json" in str(error), f"the error does not name the file: {error}"
        return False
    json.dumps(outcome_json(outcome), allow_nan=False)
    encoded(known_endpoints()["fit"].answer(Call({}, report_source([], [], candidates=FitOutcomes([outcome])))))
    fit_text.verdict(outcome)
    return True


def attempt_name(data: bytes, everything: bool) -> bool:
    """List a logdir in which a run and its files have odd names."""
    folder, _, name = data.partition(b"\0")
    return attempt_folder(pack({folder[:200] + b"/" + name.replace(b"\0", b"")[:200]: _content(name)}), everything)


@cache
def _contents() -> dict[bytes, bytes]:
    return {
        b".prof": (DEMO / "device_profile" / "memory.prof").read_bytes(),
        b".txt": (DEMO / "v5e_out_of_memory" / "compile.oom.txt").read_bytes(),
        b".json": b"[[1, 2, 3, 4]]",
    }


def _content(name: bytes) -> bytes:
    return next((content for suffix, content in _contents().items() if name.endswith(suffix)), b"\x0a\x02\x08\x01")
