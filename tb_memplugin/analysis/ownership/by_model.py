"""Rows by model path. Rows without a path get nodes of their own, so the roots always add up to all rows."""

import re
from collections.abc import Iterable

import numpy as np

from tb_memplugin.analysis.dataflow.graph import dataflow_graph
from tb_memplugin.analysis.ownership.forest import ForestBuilder
from tb_memplugin.analysis.ownership.model_paths import OpPath, Pass, argument_path, op_path, op_paths
from tb_memplugin.model.arrays import I32
from tb_memplugin.model.kinds import Axis, Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Strings, Text

# Operations that move values without computing new ones.
MOVES = {"bitcast", "bitcast-convert", "convert", "copy", "copy-done", "copy-start", "reshape", "transpose"}
MAX_CHAIN = 8  # copies of copies; compilers make two or three


def copy_scopes(recording: Recording) -> Text:
    """Return `allocations.op_name`, with the scope of the copied value for copies that have none."""
    rows, graph = recording.allocations, dataflow_graph(recording)
    if graph is None or graph.program.op_name.strings is not rows.op_name.strings:
        return rows.op_name
    program, values, strings = graph.program, graph.values, rows.op_name.strings
    named = np.r_[np.diff(strings.offsets) > 0, False]
    moves = program.op.isin(MOVES)
    made = np.maximum(values.producer, 0)
    scope = np.where(values.producer >= 0, program.op_name.codes[made], -1)
    read = np.full(recording.length, -1, dtype=np.int32)
    read[values.use] = values.used_value
    read[np.bincount(values.use, minlength=recording.length) != 1] = -1
    moved = (values.producer >= 0) & ~named[scope] & moves[made] & (read[made] >= 0)
    origin = np.where(moved, read[made], np.arange(len(values)))
    for _ in range(MAX_CHAIN):
        origin = origin[origin]
    value = np.maximum(graph.value, 0)
    wanted = (graph.value >= 0) & ~named[rows.op_name.codes] & moved[value]
    return Text(np.where(wanted, scope[origin[value]], rows.op_name.codes).astype(np.int32), strings)


ARGUMENTS, COPIES, CONSTANTS = "arguments", "copies of arguments", "constants"
FORWARD_AND_UPDATE = "forward and update"  # runtimes mark only operations of the backward pass
BEFORE, NO_PATH, UNNAMED = "live before the recording", "no model path", "unnamed"
SPECIAL_GROUPS = (ARGUMENTS, CONSTANTS, BEFORE)
PARAMETER = "parameter"  # HLO's word for an argument
PYTREE = re.compile(r"\[['\"]")  # a pytree key in an op_name: a value derived from an argument keeps its path
AUTOGRAD = re.compile(r"(\w+Backward\d*): (.+)", re.DOTALL)  # PyTorch's `BmmBackward0: bmm`
TENSORFLOW_TYPE = re.compile(r":\w+$")  # `layer/MatMul:MatMul`


def by_model(recording: Recording, builder: ForestBuilder) -> I32:
    """Return the node of each row."""
    return (_runtime_nodes if recording.axis is Axis.TIME else _program_nodes)(recording, builder)


def special_groups(recording: Recording) -> Text:
    """Return the group of each row that is not an operation's result and so has no scope and no frame, else empty."""
    rows = recording.allocations
    if recording.axis is Axis.TIME:
        code = np.where(rows.start < 0, SPECIAL_GROUPS.index(BEFORE), -1)
    else:
        # A reduction's function has parameters too, on the stack of the thread that runs it.
        is_argument = rows.op.isin({PARAMETER}) & (rows.role != Role.THREAD_LOCAL)
        code = np.select(
            [is_argument, rows.role == Role.CONSTANT],
            [SPECIAL_GROUPS.index(ARGUMENTS), SPECIAL_GROUPS.index(CONSTANTS)],
            -1,
        )
    return Text(code.astype(np.int32), Strings.of(SPECIAL_GROUPS))


def _program_nodes(recording: Recording, builder: ForestBuilder) -> I32:
    rows, group, scope = recording.allocations, special_groups(recording), copy_scopes(recording)
    arguments = _argument_paths(recording, group)
    names = [text for text in _distinct_texts(scope) if text not in arguments and not PYTREE.search(text)]
    ops = dict(zip(names, op_paths(names), strict=True))
    trained = any(op.training_pass is Pass.BACKWARD for op in ops.values())

    groups = [*group.strings, ""]
    texts = dict(zip(scope.used.tolist(), scope.strings.texts(scope.used), strict=True))

    def path(row: int) -> Iterable[str]:
        text, kind = texts.get(int(scope.codes[row]), ""), groups[group.codes[row]]
        if kind == ARGUMENTS:
            return (ARGUMENTS, *(argument_path(text) or (NO_PATH,)))
        if kind:
            return (kind, *op_path(text).parts)
        if not text:
            return (NO_PATH, rows.op[row] or UNNAMED)
        if text not in ops:
            return (COPIES, *argument_path(text))
        op = ops[text]
        # Names without a pass are forward; in a training step they are the update.
        training_pass = op.training_pass if trained or op.training_pass is not Pass.OTHER else Pass.FORWARD
        return (training_pass.value, *op.parts)

    bare = ~scope.nonempty
    return builder.rows([group.codes, scope.codes, np.where(bare, rows.op.codes, -1)], path)


def _argument_paths(recording: Recording, group: Text) -> set[str]:
    """Return the paths of all arguments of the program: those in other memory spaces may have copies here."""
    graph = dataflow_graph(recording)
    arguments = np.flatnonzero(group.codes == SPECIAL_GROUPS.index(ARGUMENTS))
    names = set(_distinct_texts(recording.allocations.op_name.take(arguments)))
    if graph is not None:
        producer = graph.values.producer[graph.values.argument >= 0]
        names.update(_distinct_texts(graph.program.op_name.take(producer[producer >= 0])))
    return names


def _runtime_nodes(recording: Recording, builder: ForestBuilder) -> I32:
    """Return the node of each row. TensorFlow and PyTorch name the operation, JAX's runtime the jitted function."""
    rows, group = recording.allocations, special_groups(recording)
    ops = _runtime_paths(_distinct_texts(rows.name))

    def path(row: int) -> Iterable[str]:
        name = rows.name[row]
        if kind := group[row]:
            return (kind,)
        if name not in ops:
            return (NO_PATH, *filter(None, dict.fromkeys((rows.op_name[row], name or UNNAMED))))
        training_pass, parts = ops[name]
        return (training_pass.value if training_pass is Pass.BACKWARD else FORWARD_AND_UPDATE, *parts)

    return builder.rows([group.codes, rows.name.codes, rows.op_name.codes], path)


def _runtime_paths(names: list[str]) -> dict[str, OpPath]:
    """Return the path of each name that is an operation."""
    backward = {name: match for name in names if (match := AUTOGRAD.fullmatch(name))}
    found = {name: op_path(TENSORFLOW_TYPE.sub("", name)) for name in names if "/" in name}
    if backward:  # PyTorch: operations outside of the backward graph have no path beyond their name
        found = {name: OpPath(Pass.OTHER, (name,)) for name in names}
        found |= {name: OpPath(Pass.BACKWARD, match.groups()) for name, match in backward.items()}
    return found


def _distinct_texts(column: Text) -> list[str]:
    return [text for text in column.strings.texts(column.used) if text]
