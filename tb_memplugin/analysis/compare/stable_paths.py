"""Names and paths that stay the same from one compile to the next, such as `layer_*/mlp/dot_general`.

A result that returns an argument updated has the argument's path.
"""

import re
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.dataflow.graph import DataflowGraph, dataflow_graph, row_of_value
from tb_memplugin.analysis.dataflow.input_output_pairs import updated_arguments
from tb_memplugin.analysis.ownership.by_model import COPIES, NO_PATH, PYTREE, copy_scopes
from tb_memplugin.analysis.ownership.forest import DIGITS, ForestBuilder, merge_layers
from tb_memplugin.analysis.ownership.model_paths import OF_JAX, argument_path, op_paths
from tb_memplugin.analysis.ownership.source_lines import base_name, of_rows, user_frames
from tb_memplugin.model.arrays import I32, I64, Mask, dimensions
from tb_memplugin.model.kinds import RegionKind
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.text import Strings, Text

PROGRAM_NUMBER = re.compile(r"\(\d+\)|\.\d+| \(module \d+(?:, time \d+)?\)")


def program_name(title: str) -> str:
    """Return the name of a program or of a file: `jit_step` of `jit_step.2(34)` and of `jit_step (module 7)`."""
    name = base_name(title)
    end = len(name)
    for number in reversed(list(PROGRAM_NUMBER.finditer(name))):
        if number.end() != end:
            break
        end = number.start()
    return name[:end]


def template(path: str) -> str:
    """Return a path with * for each number."""
    return DIGITS.sub("*", path)


def short_shape(shape: str) -> str:
    """Return `f32[4,512]` of `f32[4,512]{1,0:T(8,128)}`."""
    return shape.partition("{")[0]


def map_texts(column: Text, function: Callable[[str], str]) -> Text:
    """Map a column by `function`, which is called once for each distinct text. An empty text is unchanged."""
    used = column.used
    results = Text.of([*map(function, column.strings.texts(used)), ""])
    code_of = np.full(len(column.strings) + 1, results.codes[-1], dtype=np.int32)
    code_of[used] = results.codes[:-1]
    return Text(code_of[column.codes], results.strings)


def dtype_of(shape: str) -> str:
    """Return `f32` of `f32[4,512]`."""
    return shape.partition("[")[0]


def common_path(paths: Sequence[str]) -> str:
    """Return the keys that all paths begin with, `state/mu`, and those that all end with, `state/*/head`."""
    keys = [path.split("/") for path in paths]
    start = _common(keys)
    end = _common([each[len(start) :][::-1] for each in keys])[::-1]
    between = ["*"] if end and max(map(len, keys)) > len(start) + len(end) else []
    return "/".join([*start, *between, *end])


def _common(lists: Sequence[Sequence[str]]) -> list[str]:
    levels = zip(*lists, strict=False)
    return [level[0] for level in takewhile(lambda level: len(set(level)) == 1, levels)]


def size_of(shape: str) -> tuple[int, ...]:
    """Return the dimensions of a shape."""
    return tuple(dimensions(shape))


ARGUMENT, RESULT, VALUE = "argument", "result", "value"
ROOTS = (ARGUMENT, RESULT, VALUE)
NAMED_LINE = re.compile(r"(.+\.\w+):(\d{1,9})")  # a name such as `train.py:61`
NUMBER = ".0123456789"  # letters of an instruction's number, where it has no model path
COMBINED = ";"  # separates the names of operations that a compiler combined


class RowPaths(NamedTuple):
    """Paths of rows, numbered."""

    number: I64  # per row of `allocations`
    paths: list[str]
    roots: list[str]  # one of ROOTS
    layers: list[int]  # of the first `*` in a path; 1 without one


def row_paths(recording: Recording) -> RowPaths:
    """Return the path of each row; repeated layers are merged."""
    builder = ForestBuilder()
    graph = dataflow_graph(recording)
    leaf = _other_rows(recording, builder) if graph is None else _program_rows(recording, graph, builder)
    forest = merge_layers(builder, leaf)
    labels, parents, merged = forest.label.tolist(), forest.parent.tolist(), forest.merged.tolist()
    paths, roots, layers = list[str](), list[str](), list[int]()
    for node, parent in enumerate(parents):  # parents come first
        outer = paths[parent] if parent >= 0 else ""
        paths.append(f"{outer}/{labels[node]}" if outer else labels[node] if parent >= 0 else "")
        roots.append(roots[parent] if parent >= 0 else labels[node])
        above = layers[parent] if parent >= 0 else 1
        layers.append(merged[node] if above == 1 and "*" in labels[node] and parent >= 0 else above)
    return RowPaths(forest.leaf.astype(np.int64), paths, roots, layers)


def functions(recording: Recording) -> Text:
    """Return the innermost function of the user's code of each row, without the line; empty where it is unknown."""
    function = recording.stacks.function
    codes = of_rows(function.codes, of_rows(user_frames(recording), recording.allocations.stack))
    # The last name only: `layer` of `loss.<locals>.layer`.
    return map_texts(Text(codes, function.strings), lambda name: name.rpartition(".")[2].strip("<>"))


def _program_rows(recording: Recording, graph: DataflowGraph, builder: ForestBuilder) -> I32:
    rows, text = recording.allocations, _texts(recording, graph)
    argument = _argument_of_rows(recording, graph)
    kind = np.where(argument >= 0, np.where(graph.is_argument, 0, 1), 2)
    named = np.unique(text.codes[text.nonempty])
    operations = op_paths(text.strings[code].partition(COMBINED)[0] for code in named.tolist())
    parsed = dict(zip(named.tolist(), operations, strict=True))
    kind[_result_rows(recording) & (argument < 0)] = 1
    own = np.where(argument >= 0, rows.op_name.codes[np.maximum(argument, 0)], -1)

    def path(row: int) -> tuple[str, ...]:
        root = ROOTS[int(kind[row])]
        if own[row] >= 0:
            return (root, *(argument_path(rows.op_name.strings[int(own[row])]) or (NO_PATH,)))
        if not text[row]:
            return (root, NO_PATH, rows.op[row] or NO_PATH)
        if PYTREE.search(text[row]):
            return (root, COPIES, *argument_path(text[row]))
        parts = parsed[int(text.codes[row])].parts
        return (root, *([part for part in parts if part not in OF_JAX] or [NO_PATH]))

    bare = np.where(text.codes >= 0, -1, rows.op.codes)
    return builder.rows([kind, own, text.codes, bare], path)


def _texts(recording: Recording, graph: DataflowGraph) -> Text:
    """Return the operation's name of each row: of a fusion's result, else of the instruction or the value it copies."""
    scope, inside = copy_scopes(recording), graph.values.op_name
    own = Text(np.where(graph.value >= 0, inside.codes[graph.value], -1).astype(np.int32), inside.strings)
    outside = np.where(scope.nonempty, scope.codes + len(inside.strings), -1)
    codes = np.where(own.nonempty, own.codes, outside)
    return Text(codes.astype(np.int32), Strings.joined(inside.strings, scope.strings))


def _result_rows(recording: Recording) -> Mask:
    kind = recording.regions.kind[recording.allocations.region]
    found: Mask = ((kind & RegionKind.OUTPUT) != 0) & ((kind & RegionKind.PARAMETER) == 0)
    return found


def _argument_of_rows(recording: Recording, graph: DataflowGraph) -> I64:
    """Return the row of each row's argument: itself, or the argument whose update is a result in the row's memory."""
    rows, pairs, row_of = recording.allocations, updated_arguments(recording), row_of_value(recording)
    found = np.full(len(rows), -1, dtype=np.int64)
    result, argument = row_of[pairs.value].astype(np.int64), row_of[pairs.argument].astype(np.int64)
    known = (result >= 0) & (argument >= 0)
    of_region = np.full(len(recording.regions) + 1, -1, dtype=np.int64)
    of_region[rows.region[result[known]]] = argument[known]
    # A region with several results, such as the table of a tuple, is not assigned to any of them.
    several = np.bincount(rows.region[result[known]], minlength=len(of_region)) > 1
    of_region[several] = -1
    in_result = _result_rows(recording)
    found[in_result] = of_region[rows.region[in_result]]
    own = np.flatnonzero(graph.is_argument)
    found[own] = own
    return found


def _other_rows(recording: Recording, builder: ForestBuilder) -> I32:
    rows = recording.allocations

    def path(row: int) -> tuple[str, ...]:
        name = rows.name[row]
        line = NAMED_LINE.fullmatch(name)  # lines move with every edit: the file is the path
        short = base_name(line[1]) if line else name.rstrip(NUMBER)
        return (VALUE, short or rows.op[row] or rows.op_name[row] or NO_PATH)

    return builder.rows([rows.name.codes, rows.op.codes, rows.op_name.codes], path)
