"""Rows by model path. What has none is a node of its own, so that the roots always sum up to all rows."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from tb_memplugin.analysis.dataflow.graph import dataflow_graph
from tb_memplugin.analysis.ownership.copy_scopes import copy_scopes
from tb_memplugin.analysis.ownership.forest import ForestBuilder
from tb_memplugin.analysis.ownership.model_paths import OpPath, Pass, argument_path, op_path
from tb_memplugin.model.arrays import I32
from tb_memplugin.model.kinds import Axis, Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Strings, Text

ARGUMENTS, COPIES, CONSTANTS = "arguments", "copies of arguments", "constants"
FORWARD_AND_UPDATE = "forward and update"  # runtimes mark what belongs to a gradient, and nothing else
BEFORE, NO_PATH, UNNAMED = "live before the recording", "no model path", "unnamed"
SPECIAL_GROUPS = (ARGUMENTS, CONSTANTS, BEFORE)
PARAMETER = "parameter"  # HLO's word for an argument
PYTREE = re.compile(r"\[['\"]")  # a key in an op_name: what a compiler makes of an argument keeps the argument's path
AUTOGRAD = re.compile(r"(\w+Backward\d*): (.+)", re.DOTALL)  # PyTorch's `BmmBackward0: bmm`
TENSORFLOW_TYPE = re.compile(r":\w+$")  # `layer/MatMul:MatMul`


def by_model(recording: Recording, grower: ForestBuilder) -> I32:
    """The node of each row."""
    return (_runtime_nodes if recording.axis is Axis.TIME else _program_nodes)(recording, grower)


def special_groups(recording: Recording) -> Text:
    """What rows are that are no operation's results, so that no scope and no frame asked for them; empty of others."""
    rows = recording.allocations
    if recording.axis is Axis.TIME:
        code = np.where(rows.start < 0, SPECIAL_GROUPS.index(BEFORE), -1)
    else:
        parameters = [code for code in range(len(rows.op.strings)) if rows.op.strings[code] == PARAMETER]
        # The function of a reduction has arguments too, on the stack of the thread that runs it.
        given = np.isin(rows.op.codes, parameters) & (rows.role != Role.THREAD_LOCAL)
        code = np.select(
            [given, rows.role == Role.CONSTANT], [SPECIAL_GROUPS.index(ARGUMENTS), SPECIAL_GROUPS.index(CONSTANTS)], -1
        )
    return Text(code.astype(np.int32), Strings.of(SPECIAL_GROUPS))


def _program_nodes(recording: Recording, grower: ForestBuilder) -> I32:
    rows, aside, scope = recording.allocations, special_groups(recording), copy_scopes(recording)
    arguments = _argument_paths(recording, aside)
    ops = {text: op_path(text) for text in _distinct_texts(scope) if text not in arguments and not PYTREE.search(text)}
    trained = any(op.within is Pass.BACKWARD for op in ops.values())

    def path(row: int) -> Iterable[str]:
        text, what = scope[row], aside[row]
        if what == ARGUMENTS:
            return (ARGUMENTS, *(argument_path(text) or (NO_PATH,)))
        if what:
            return (what, *op_path(text).parts)
        if not text:
            return (NO_PATH, rows.op[row] or UNNAMED)
        return _path_in_pass(ops[text], trained) if text in ops else (COPIES, *argument_path(text))

    bare = np.r_[np.diff(scope.strings.offsets) == 0, True][scope.codes]
    return grower.rows([aside.codes, scope.codes, np.where(bare, rows.op.codes, -1)], path)


def _argument_paths(recording: Recording, aside: Text) -> set[str]:
    """The paths of the program's arguments, those in other memories too: a copy here may be of one there."""
    program, known = recording.program, dataflow_graph(recording)
    given = np.flatnonzero(aside.codes == SPECIAL_GROUPS.index(ARGUMENTS))
    names = set(_distinct_texts(recording.allocations.scope.take(given)))
    if known is not None and program is not None:
        made = known.values.producer[known.values.argument >= 0]
        names.update(_distinct_texts(program.scope.take(made[made >= 0])))
    return names


def _runtime_nodes(recording: Recording, grower: ForestBuilder) -> I32:
    """TensorFlow and PyTorch name the operation. JAX's runtime knows the jitted function, and that is no path."""
    rows, aside = recording.allocations, special_groups(recording)
    ops = _runtime_paths(_distinct_texts(rows.name))

    def path(row: int) -> Iterable[str]:
        name = rows.name[row]
        if what := aside[row]:
            return (what,)
        if name not in ops:
            return (NO_PATH, *filter(None, dict.fromkeys((rows.scope[row], name or UNNAMED))))
        within, parts = ops[name]
        return (within.value if within is Pass.BACKWARD else FORWARD_AND_UPDATE, *parts)

    return grower.rows([aside.codes, rows.name.codes, rows.scope.codes], path)


def _runtime_paths(names: list[str]) -> dict[str, OpPath]:
    """Of the names that are operations."""
    backward = {name: match for name in names if (match := AUTOGRAD.fullmatch(name))}
    found = {name: op_path(TENSORFLOW_TYPE.sub("", name)) for name in names if "/" in name}
    if backward:  # PyTorch: what runs in no node of its backward graph is another operation of its own
        found = {name: OpPath(Pass.OTHER, (name,)) for name in names}
        found |= {name: OpPath(Pass.BACKWARD, match.groups()) for name, match in backward.items()}
    return found


def _distinct_texts(column: Text) -> list[str]:
    return [column.strings[code] for code in np.unique(column.codes).tolist() if code >= 0 and column.strings[code]]


def _path_in_pass(op: OpPath, trained: bool) -> tuple[str, ...]:
    """Where nothing is trained, all is one pass; where something is, what no pass names is the update."""
    within = op.within if trained or op.within is not Pass.OTHER else Pass.FORWARD
    return (within.value, *op.parts)
