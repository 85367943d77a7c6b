"""The command `buffers`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from tb_memplugin.commands.support.output import asked, chosen_recording
from tb_memplugin.commands.support.terminal import reply
from tb_memplugin.questions.asking.selectors import choose_with_allocations
from tb_memplugin.questions.asking.text_table import align
from tb_memplugin.questions.explain.buffers import BuffersAnswerJson, buffers, one_buffer
from tb_memplugin.sizes import bytes_text, counted

HIDDEN = ("schema_version", "next", "omitted", "caveats")


def run(arguments: argparse.Namespace) -> None:
    chosen, _ = chosen_recording(arguments, choose_with_allocations)
    question = asked(arguments, arguments.path)
    if arguments.row is not None:
        one = one_buffer(chosen, arguments.row, question)
        reply(arguments.json, lambda: one, _facts(one))
    else:
        found = buffers(chosen, question, arguments.at, arguments.match)
        reply(arguments.json, lambda: found, _table(found))


def _table(found: BuffersAnswerJson) -> Iterator[str]:
    rows = [
        [
            *(bytes_text(one["bytes"]), str(one["row"]), one["role"], one["shape"]),
            *(one["source"] or "-", one["op_name"] or one["name"] or "-"),
        ]
        for one in found["buffers"]
    ]
    yield f"{counted(found['buffers_total'], 'live buffer')}, {bytes_text(found['buffers_bytes'])}:"
    yield ""
    yield from align([["bytes", "row", "role", "shape", "source", "name"], *rows], 2)
    if left := found["buffers_total"] - len(rows):
        yield f"and {counted(left, 'more buffer')}; --top all lists them"


def _facts(one: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each fact, and one for each frame of a stack."""
    for key, value in one.items():
        if key in HIDDEN:
            continue
        if isinstance(value, list):
            yield from (f"{key}: {', '.join(f'{name} {text}' for name, text in item.items())}" for item in value)
        elif isinstance(value, dict):
            yield f"{key}: {', '.join(f'{name} {text}' for name, text in value.items())}"
        else:
            yield f"{key}: {bytes_text(value) if key.endswith('_bytes') else value}"
