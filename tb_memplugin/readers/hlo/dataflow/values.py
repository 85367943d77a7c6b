"""Values of a program: their uses, loop carries, names of their operations, and roles as arguments and results."""

import numpy as np

from tb_memplugin.model.arrays import I32, I64, U8, take_or_missing
from tb_memplugin.model.dataflow import DataflowValues
from tb_memplugin.model.text import Strings, Text
from tb_memplugin.native.graph.walks import grouped, reach
from tb_memplugin.native.hlo.shape_types import MAX_DEPTH
from tb_memplugin.readers.common.budget import at_once
from tb_memplugin.readers.hlo.dataflow.analysis import NO_READ, TOP_ONLY, DataflowAnalysis, limit_reads
from tb_memplugin.readers.hlo.dataflow.derivation import (
    combined_collectives,
    find_derivations,
    multi_output_fusions,
    result_operands,
)
from tb_memplugin.readers.hlo.dataflow.fusions import FusedResults
from tb_memplugin.readers.hlo.dataflow.nodes import ResultNodes, expand_ranges
from tb_memplugin.readers.hlo.dataflow.pass_through import FORWARDING
from tb_memplugin.readers.hlo.dataflow.products import find_products
from tb_memplugin.readers.hlo.module.columns import Lists
from tb_memplugin.readers.hlo.module.shapes import elements_of
from tb_memplugin.readers.hlo.module.tables import LARGE_BYTES, HloModule


def values_of_name(dataflow: DataflowAnalysis, producer: I32, fused: FusedResults | None, word: bytes) -> I32:
    """Return the values that an operation with the word in its name computes, alone or inside a fusion.

    `producer` is the position of each value. Of the fusions with several results, `fused`, only the results that depend
    on the operation are returned.
    """
    named = np.zeros(dataflow.schedule.length + 1, dtype=bool)
    named[:-1] = dataflow.module.op_name.all().contains(word)[dataflow.schedule.order]
    fusions = dataflow.fusions()
    named[fusions.positions_with(fusions.op_name.contains(word))] = True
    if fused is None:
        return np.flatnonzero(named[producer]).astype(np.int32)
    named[fused.position] = False
    body = fused.body
    inside = np.flatnonzero(dataflow.module.interned_texts(body.op_name).contains(word)).astype(np.int32)
    known = np.flatnonzero(body.operand >= 0)
    user = np.repeat(np.arange(len(body.count), dtype=np.int32), body.count)[known]
    begin, order = grouped(body.operand[known].astype(np.int32), len(body.count))
    downstream = reach(begin, user[order], inside).view(np.bool_)
    results = fused.value[downstream[fused.root] & (fused.value >= 0)]
    values: I32 = np.r_[np.flatnonzero(named[producer]), results].astype(np.int32)
    return values


ALIASES = "hlo_module.input_output_alias.entries"
MAX_MOVES = 4  # compilers' casts and copies of a result, one after another
REAL_OR_COMPLEX = {10, 11, 12, 15, 16, 18, 19, 20, 23, 24, 25, 28, 29}  # of XLA's PrimitiveType


def dataflow_values(module: HloModule, dataflow: DataflowAnalysis) -> DataflowValues:
    """Collect the dataflow values of a module; value i is the file's i-th logical buffer."""
    if len(module.data) < LARGE_BYTES:
        return _values(module, dataflow)
    # The bodies of fusions are most of a large program. They are read while everything else is found.
    return at_once(lambda: _values(module, dataflow), dataflow.fusions)[0]


def _values(module: HloModule, dataflow: DataflowAnalysis) -> DataflowValues:
    nodes = dataflow.nodes
    begin, use = _uses(dataflow)
    argument = np.full(len(dataflow.defined), -1, dtype=np.int32)
    # By parameter number and shape index.
    arguments = _leaves(nodes, [position for _, position in sorted(nodes.parameters(nodes.module.entry))])
    buffers = dataflow.node_buffer[arguments]
    known = np.flatnonzero(buffers >= 0)
    argument[buffers[known]] = known
    root = nodes.root(nodes.module.entry)
    results = _leaves(nodes, [root] if root >= 0 else [])
    shape, elements, floating = _shapes(module)
    carried_to, carried_from = dataflow.loop_carried
    fused = multi_output_fusions(dataflow)
    producer = dataflow.defined.astype(np.int32)  # the position of each value's instruction; -1 if it is not scheduled
    row, _, value = dataflow.late.results(dataflow.node_buffer)
    producer[value] = dataflow.late.update[row]
    # Instructions that compute each of their results from some operands only.
    bundled = [combined_collectives(dataflow), dataflow.late.pairs(dataflow.node_buffer)]
    bundled += [] if fused is None else [result_operands(fused)]
    operand, result = (np.concatenate(column) for column in zip(*bundled, strict=True))
    return DataflowValues(
        shape=shape,
        elements=elements,
        floating=floating,
        producer=producer,
        use_begin=begin,
        use=use,
        loop_carried=(carried_from.astype(np.int32), carried_to.astype(np.int32)),
        bundled=(operand, result),
        argument=argument,
        result=dataflow.node_buffer[results],
        donor=_donors(nodes, arguments, results),
        derivations=find_derivations(module, dataflow, elements),
        products=find_products(dataflow),
        op_name=_scopes(dataflow, fused),
        transposed=values_of_name(dataflow, producer, fused, b"transpose("),
    )


def _named_instructions(fused: FusedResults) -> I32:
    """Return the instruction that computes each result, without the compiler's casts and copies, which have no name."""
    body, found = fused.body, fused.root.copy()
    for _ in range(MAX_MOVES):
        moves = (body.op_name.length[found] == 0) & (body.count[found] == 1)
        origin = body.operand[body.begin[found[moves]]]
        found[moves] = np.where(origin >= 0, origin, found[moves])
    return found


def _scopes(dataflow: DataflowAnalysis, fused: FusedResults | None) -> Text:
    """Return the operation name of each value. An operation inside a fusion has a name of its own."""
    module = dataflow.module
    row = take_or_missing(dataflow.schedule.order, dataflow.defined)
    scope = module.op_name.all()
    codes = take_or_missing(scope.codes, row).astype(np.int32)
    if fused is None:
        return Text(codes, scope.strings)
    inside = module.interned_texts(fused.body.op_name.take(_named_instructions(fused)))
    known = (fused.value >= 0) & inside.nonempty
    codes[fused.value[known]] = inside.codes[known] + len(scope.strings)
    return Text(codes, Strings.joined(scope.strings, inside.strings))


def _uses(dataflow: DataflowAnalysis) -> tuple[I64, I32]:
    """Return the positions that read each value: value v is read at use[begin[v]:begin[v + 1]], rising."""
    nodes, n = dataflow.nodes, len(dataflow.defined)
    user, operand = nodes.edges
    # Forwarding instructions forward their first operand; an async-update may read others.
    further = np.r_[False, user[1:] == user[:-1]][: len(user)]
    read = ~nodes.is_opcode(NO_READ | FORWARDING)
    read[dataflow.late.update] = True
    reads = read[user] | (nodes.is_opcode(FORWARDING)[user] & further)
    user, operand = user[reads], operand[reads]
    count = nodes.count[operand].astype(np.int64)
    # A conditional itself reads only the branch index; its other operands are read in the branches.
    count[nodes.is_opcode(TOP_ONLY | {"conditional"})[user]] = 1
    limit_reads(nodes, count)
    read_nodes = expand_ranges(nodes.base[operand], count, nodes.budget)
    position = np.repeat(user, count)
    value = dataflow.node_buffer[read_nodes]
    begin, order = grouped(value, n)
    use = position[order]
    # Remove repeated reads of a value by one instruction. Edges are sorted by user, so they are adjacent.
    first = np.ones(len(use), dtype=bool)
    first[1:] = (use[1:] != use[:-1]) | (value[order][1:] != value[order][:-1])
    return np.r_[0, np.cumsum(first)][begin].astype(np.int64), use[first].astype(np.int32)


def _leaves(nodes: ResultNodes, at: list[int]) -> I32:
    """Return the non-tuple nodes of these positions' results."""
    if not at:
        return np.empty(0, dtype=np.int32)
    positions = np.array(at, dtype=np.int32)
    count = nodes.count[positions]
    leaf = nodes.shapes.child_count[expand_ranges(nodes.top(positions), count, nodes.budget)] == 0
    found: I32 = expand_ranges(nodes.base[positions], count, nodes.budget)[leaf].astype(np.int32)
    return found


def _donors(nodes: ResultNodes, arguments: I32, results: I32) -> I32:
    """Return, per leaf of the result, the argument leaf that the module's input_output_alias donates to it; -1 none."""
    donor = np.full(len(results), -1, dtype=np.int32)
    table = nodes.module.tables[ALIASES]
    root = nodes.root(nodes.module.entry)
    positions = dict(nodes.parameters(nodes.module.entry))
    number = table["parameter_number"]
    if not len(number) or root < 0 or not len(arguments) or not len(results):
        return donor
    argument_index = Lists.of(nodes.module.tables[f"{ALIASES}.parameter_shape_index"], len(number))
    result_index = Lists.of(nodes.module.tables[f"{ALIASES}.output_shape_index"], len(number))
    argument_positions = np.array([positions.get(n, -1) for n in number.tolist()], dtype=np.int32)
    source = _leaf_index(nodes, argument_positions, argument_index, arguments)
    target = _leaf_index(nodes, np.full(len(number), root, dtype=np.int32), result_index, results)
    known = (source >= 0) & (target >= 0)
    donor[target[known]] = source[known]
    return donor


def _leaf_index(nodes: ResultNodes, positions: I32, index: Lists, leaves: I32) -> I32:
    """Return the index in `leaves` of the given element of each position's result, -1 where it is no leaf."""
    node = nodes.top(positions)
    count = index.count()
    for depth in range(min(int(count.max(initial=0)), MAX_DEPTH)):
        deep = np.flatnonzero(count > depth)
        node[deep] = nodes.shapes.child(node[deep], index.nth(deep, depth))
    found = np.where(node >= 0, nodes.node_at(positions, node), -1)
    order = np.argsort(leaves, kind="stable")
    at = np.minimum(np.searchsorted(leaves[order], found), len(leaves) - 1)
    return np.where(leaves[order][at] == found, order[at], -1).astype(np.int32)


def _shapes(module: HloModule) -> tuple[I32, I64, U8]:
    """Return, per value, a shape code, the number of elements, and 1 where they are real or complex numbers."""
    seen: dict[tuple[int, ...], int] = {}
    code: list[int] = []
    elements: list[int] = []
    floating: list[bool] = []
    table, _ = module.instruction_shapes
    for shape in table.distinct:
        known = seen.setdefault((shape.element_type, *shape.dimensions), len(seen))
        code.append(known)
        if known == len(elements):
            elements.append(elements_of(shape))
            floating.append(shape.element_type in REAL_OR_COMPLEX)
    node = module.buffer_node
    kind = np.where(node >= 0, table.kind[node], -1)
    codes = np.array([*code, len(seen)], dtype=np.int32)[kind]  # the last entry is for node -1
    return codes, np.array([*elements, 0], dtype=np.int64)[codes], np.array([*floating, False], dtype=np.uint8)[codes]
