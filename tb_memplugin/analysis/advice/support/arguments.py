"""The arguments of the jitted function as the user wrote them, and those that are not needed at the peak."""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.dataflow.graph import dataflow_graph, row_of_value
from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.analysis.ownership.model_paths import argument_path
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.recording import Recording

# Arrays below a hundredth of the largest do not decide which part of an argument is named. Of the stored programs' 41
# pieces on offloading, a thirtieth makes 2 name a single array instead of a field of the state, a tenth makes 4, and a
# thousandth changes none.
SMALL_SHARE = 100
# One key of a path: `state`, `.params`, `['w']`, `[0]`.
PIECE = re.compile(r"""\[(?:'[^']*'|"[^"]*"|[^\[\]]*)\]|\.?[^.\[\]]+""")


class Argument(NamedTuple):
    """An argument or a part of it: its name, and the rows of its arrays."""

    name: str
    rows: I64


@memoize
def arguments(recording: Recording) -> list[Argument]:
    """Return the arguments in order, without unused ones, which JAX drops."""
    graph = dataflow_graph(recording)
    if graph is None:
        return []
    values = np.flatnonzero(graph.values.argument >= 0)
    values = values[np.argsort(graph.values.argument[values], kind="stable")]
    row = row_of_value(recording)[values]
    members: dict[str, list[int]] = {}
    for at in row[row >= 0].tolist():
        members.setdefault(_root(recording.allocations.op_name[at]), []).append(at)
    return [Argument(name, np.array(rows, dtype=np.int64)) for name, rows in members.items()]


def argument_parts(recording: Recording) -> Iterator[Argument]:
    """Yield each argument, or its optimizer state and the rest of it: `state.opt_state` and `state.params`.

    The parts are read at different times, so advice on them differs.
    """
    role, scope, size = roles(recording), recording.allocations.op_name, recording.allocations.size
    for argument in arguments(recording):
        is_state = role[argument.rows] == Role.OPTIMIZER_STATE
        if is_state.all() or not is_state.any():
            yield argument
            continue
        for rows in (argument.rows[is_state], argument.rows[~is_state]):
            large = rows[SMALL_SHARE * size[rows] >= size[rows].max()]  # a counter may be anywhere in the tree
            yield Argument(_common_node([scope[row] for row in large.tolist()]) or argument.name, rows)


def _common_node(paths: Sequence[str]) -> str:
    """Return the paths' innermost common node: `state[1]` for `state[1]['mu']` and `state[1]['nu']`."""
    levels = zip(*map(PIECE.findall, paths), strict=False)
    return "".join(level[0] for level in takewhile(lambda level: len(set(level)) == 1, levels))


def _root(path: str) -> str:
    """Return `params` for `params['layer_0']['up']`; a positional argument is `args[0]`."""
    keys = argument_path(path)
    if len(keys) > 1 and keys[0] == "args" and keys[1].startswith("["):
        return keys[0] + keys[1]
    return keys[0] if keys else ""


def function_name(recording: Recording) -> str:
    """Return the jitted function's name, for code in texts."""
    module = recording.program.module if recording.program is not None else ""
    return module.removeprefix("jit_").removeprefix("pmap_") or "f"
