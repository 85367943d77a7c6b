"""Forests of synthetic recordings, and their text form."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from support.recordings import Row, recording

from tb_memplugin.analysis.ownership.classification import Forest, weigh
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.analysis.usage.live_set import live_rows
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import Stacks
from tb_memplugin.model.text import Text


def drawn(of: Forest, weights: Sequence[int] | None = None) -> list[str]:
    """Return the nodes as an indented list, with `*3` after merged nodes, and the bytes of nodes that have any."""
    depth: list[int] = []
    lines = []
    for node, parent in enumerate(of.parent.tolist()):
        depth.append(depth[parent] + 1 if parent >= 0 else 0)
        merged = f" x{of.merged[node]}" if of.merged[node] > 1 else ""
        weight = f" {weights[node]}" if weights is not None else ""
        lines.append(f"{'  ' * depth[node]}{of.label[node]}{merged}{weight}")
    return lines


def program(rows: Sequence[tuple[str, str, int]], role: Role = Role.TEMPORARY) -> Recording:
    """Build a recording of (op, op_name, bytes) rows, all live at position 0."""
    made = recording([Row(size, 0, 1, role=role) for _, _, size in rows], 1)
    named = dataclasses.replace(
        made.allocations, op=Text.of([op for op, _, _ in rows]), op_name=Text.of([scope for _, scope, _ in rows])
    )
    return dataclasses.replace(made, allocations=named)


def weights(of: Recording, found: Forest) -> list[int]:
    rows = live_rows(of, peak(of).position)
    inclusive: list[int] = weigh(found, rows, of.allocations.charge[rows]).tolist()
    return inclusive


def with_frames(of: Recording, frames: Sequence[tuple[int, str, str]], stack: Sequence[int]) -> Recording:
    """Build frames from (parent, function, file); the line of each is 10 x its number."""
    stacks = Stacks(
        parent=np.array([parent for parent, _, _ in frames], np.int32),
        function=Text.of([function for _, function, _ in frames]),
        file=Text.of([file for _, _, file in frames]),
        line=np.arange(len(frames), dtype=np.int32) * 10,
    )
    rows = dataclasses.replace(of.allocations, stack=np.array(stack, np.int32))
    return dataclasses.replace(of, stacks=stacks, allocations=rows)


FRAMES = [
    (-1, "main", "train.py"),
    (0, "PjitFunction(step)", ""),
    (1, "cache_miss", "/venv/lib/python3.12/site-packages/jax/_src/pjit.py"),
    (2, "loss", "/home/me/jax/model.py"),
    (3, "shard_args", "pxla.py"),
    (4, "_array_shard_arg", "array.py"),  # JAX's, because JAX calls it
    (0, "mine", "array.py"),
    (1, "Execute", ""),
]
