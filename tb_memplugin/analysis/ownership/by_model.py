"""Rows by model path. What has none is a node of its own, so that the roots always sum up to all rows."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from tb_memplugin.analysis.dataflow.graph import flow
from tb_memplugin.analysis.ownership.copy_scopes import scopes
from tb_memplugin.analysis.ownership.forest import Grower
from tb_memplugin.analysis.ownership.model_paths import OpPath, Pass, argument_path, op_path
from tb_memplugin.model.arrays import I32
from tb_memplugin.model.kinds import Axis, Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Strings, Text

ARGUMENTS, COPIES, CONSTANTS = "arguments", "copies of arguments", "constants"
FORWARD_AND_UPDATE = "forward and update"  # runtimes mark what belongs to a gradient, and nothing else
BEFORE, NO_PATH, UNNAMED = "live before the recording", "no model path", "unnamed"
ASIDES = (ARGUMENTS, CONSTANTS, BEFORE)
PARAMETER = "parameter"  # HLO's word for an argument
PYTREE = re.compile(r"\[['\"]")  # a key in an op_name: what a compiler makes of an argument keeps the argument's path
AUTOGRAD = re.compile(r"(\w+Backward\d*): (.+)", re.DOTALL)  # PyTorch's `BmmBackward0: bmm`
TENSORFLOW_TYPE = re.compile(r":\w+$")  # `layer/MatMul:MatMul`


def by_model(recording: Recording, grower: Grower) -> I32:
    """The node of each row."""
    return (_of_runtime if recording.axis is Axis.TIME else _of_program)(recording, grower)


def asides(recording: Recording) -> Text:
    """What rows are that are no operation's results, so that no scope and no frame asked for them; empty of others."""
    rows = recording.allocations
    if recording.axis is Axis.TIME:
        code = np.where(rows.start < 0, ASIDES.index(BEFORE), -1)
    else:
        parameters = [code for code in range(len(rows.op.strings)) if rows.op.strings[code] == PARAMETER]
        # The function of a reduction has arguments too, on the stack of the thread that runs it.
        given = np.isin(rows.op.codes, parameters) & (rows.role != Role.THREAD_LOCAL)
        code = np.select([given, rows.role == Role.CONSTANT], [ASIDES.index(ARGUMENTS), ASIDES.index(CONSTANTS)], -1)
    return Text(code.astype(np.int32), Strings.of(ASIDES))


def _of_program(recording: Recording, grower: Grower) -> I32:
    rows, aside, scope = recording.allocations, asides(recording), scopes(recording)
    arguments = _arguments(recording, aside)
    ops = {text: op_path(text) for text in _distinct(scope) if text not in arguments and not PYTREE.search(text)}
    trained = any(op.within is Pass.BACKWARD for op in ops.values())

    def path(row: int) -> Iterable[str]:
        text, what = scope[row], aside[row]
        if what == ARGUMENTS:
            return (ARGUMENTS, *(argument_path(text) or (NO_PATH,)))
        if what:
            return (what, *op_path(text).parts)
        if not text:
            return (NO_PATH, rows.op[row] or UNNAMED)
        return _in_pass(ops[text], trained) if text in ops else (COPIES, *argument_path(text))

    bare = np.r_[np.diff(scope.strings.offsets) == 0, True][scope.codes]
    return grower.rows([aside.codes, scope.codes, np.where(bare, rows.op.codes, -1)], path)


def _arguments(recording: Recording, aside: Text) -> set[str]:
    """The paths of the program's arguments, those in other memories too: a copy here may be of one there."""
    program, known = recording.program, flow(recording)
    given = np.flatnonzero(aside.codes == ASIDES.index(ARGUMENTS))
    names = set(_distinct(recording.allocations.scope.take(given)))
    if known is not None and program is not None:
        made = known.values.producer[known.values.argument >= 0]
        names.update(_distinct(program.scope.take(made[made >= 0])))
    return names


def _of_runtime(recording: Recording, grower: Grower) -> I32:
    """TensorFlow and PyTorch name the operation. JAX's runtime knows the jitted function, and that is no path."""
    rows, aside = recording.allocations, asides(recording)
    ops = _runtime_paths(_distinct(rows.name))

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


def _distinct(column: Text) -> list[str]:
    return [column.strings[code] for code in np.unique(column.codes).tolist() if code >= 0 and column.strings[code]]


def _in_pass(op: OpPath, trained: bool) -> tuple[str, ...]:
    """Where nothing is trained, all is one pass; where something is, what no pass names is the update."""
    within = op.within if trained or op.within is not Pass.OTHER else Pass.FORWARD
    return (within.value, *op.parts)
