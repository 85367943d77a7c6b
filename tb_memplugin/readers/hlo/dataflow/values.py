"""The values of a module: who reads them, what they are carried into, and which are arguments and results."""

from __future__ import annotations

import numpy as np

from tb_memplugin.model.arrays import I32, I64, U8
from tb_memplugin.model.dataflow import DataflowValues
from tb_memplugin.native.graph.walks import grouped
from tb_memplugin.readers.hlo.dataflow.derivation import bundles, derivations
from tb_memplugin.readers.hlo.dataflow.nodes import Nodes, spread
from tb_memplugin.readers.hlo.dataflow.pass_through import PASS_ON
from tb_memplugin.readers.hlo.lifetimes.uses import NO_USE, SHALLOW, Dataflow
from tb_memplugin.readers.hlo.module import Lists, Module
from tb_memplugin.readers.hlo.shapes import elements_of

ALIASES = "hlo_module.input_output_alias.entries"
REAL_OR_COMPLEX = {10, 11, 12, 15, 16, 18, 19, 20, 23, 24, 25, 28, 29}  # of XLA's PrimitiveType


def values_of(module: Module, dataflow: Dataflow) -> DataflowValues:
    """Everything the model knows of a module's values; value i is the file's i-th logical buffer."""
    nodes = dataflow.nodes
    begin, use = _uses(dataflow)
    argument = np.full(len(dataflow.defined), -1, dtype=np.int32)
    arguments = _argument_nodes(nodes)
    shown = _shown(dataflow, arguments)
    known = np.flatnonzero(shown >= 0)
    argument[shown[known]] = known
    results = _result_nodes(nodes)
    shape, elements, floating = _shapes(module)
    carried_to, carried_from = dataflow.carries
    return DataflowValues(
        shape=shape,
        elements=elements,
        floating=floating,
        producer=dataflow.defined.astype(np.int32),
        use_begin=begin,
        use=use,
        loop_carried=(carried_from.astype(np.int32), carried_to.astype(np.int32)),
        bundled=bundles(dataflow) if dataflow.nodes.total else (argument[:0], argument[:0]),
        argument=argument,
        result=_shown(dataflow, results),
        donor=_donors(nodes, arguments, results),
        derivations=derivations(module, dataflow, elements),
    )


def _shown(dataflow: Dataflow, at: I32) -> I32:
    return dataflow.shown[at].astype(np.int32) if dataflow.nodes.total else np.full(len(at), -1, dtype=np.int32)


def _uses(dataflow: Dataflow) -> tuple[I64, I32]:
    """CSR of the positions that read each value."""
    nodes, n = dataflow.nodes, len(dataflow.defined)
    user, operand = nodes.edges
    reads = ~nodes.is_opcode(NO_USE | PASS_ON)[user]
    user, operand = user[reads], operand[reads]
    count = nodes.count[operand].astype(np.int64)
    # A conditional reads which branch to take; what it is given is read in the branches.
    count[nodes.is_opcode(SHALLOW | {"conditional"})[user]] = 1
    if count.sum() > 16 * (nodes.total + len(user)):  # no program reads whole tuples that often
        count[:] = 1
    position = np.repeat(user, count)
    value = dataflow.shown[spread(nodes.base[operand], count)] if nodes.total else position[:0]
    begin, order = grouped(value.astype(np.int32), n)
    use = position[order]
    # An instruction may read a value twice; edges come by rising user, so equal ones are neighbours.
    first = np.ones(len(use), dtype=bool)
    first[1:] = (use[1:] != use[:-1]) | (value[order][1:] != value[order][:-1])
    return np.r_[0, np.cumsum(first)][begin].astype(np.int64), use[first].astype(np.int32)


def _argument_nodes(nodes: Nodes) -> I32:
    """The nodes of the entry's arguments that hold data, by number and place in it."""
    numbered = sorted(nodes.parameters(nodes.module.entry))
    positions = np.array([position for _, position in numbered], dtype=np.int32)
    return _leaves(nodes, positions)


def _result_nodes(nodes: Nodes) -> I32:
    root = nodes.root(nodes.module.entry)
    return _leaves(nodes, np.array([root] if root >= 0 else [], dtype=np.int32))


def _leaves(nodes: Nodes, positions: I32) -> I32:
    """The nodes of these instructions' results that are no tuples."""
    if not len(positions):
        return np.empty(0, dtype=np.int32)
    shape = nodes.shape[positions]
    count = nodes.count[positions]
    leaf = nodes.shapes.child_count[spread(nodes.shapes.begin[shape], count)] == 0
    found: I32 = spread(nodes.base[positions], count)[leaf].astype(np.int32)
    return found


def _donors(nodes: Nodes, arguments: I32, results: I32) -> I32:
    """Per leaf of the result, the leaf of the arguments that the module's input_output_alias gives it."""
    donor = np.full(len(results), -1, dtype=np.int32)
    table = nodes.module.tables[ALIASES]
    root = nodes.root(nodes.module.entry)
    positions = dict(nodes.parameters(nodes.module.entry))
    number = table["parameter_number"]
    if not len(number) or root < 0 or not len(arguments) or not len(results):
        return donor
    inside = Lists.of(nodes.module.tables[f"{ALIASES}.parameter_shape_index"], len(number))
    outside = Lists.of(nodes.module.tables[f"{ALIASES}.output_shape_index"], len(number))
    given = np.array([positions.get(n, -1) for n in number.tolist()], dtype=np.int32)
    source = _leaf_at(nodes, given, inside, arguments)
    target = _leaf_at(nodes, np.full(len(number), root, dtype=np.int32), outside, results)
    known = (source >= 0) & (target >= 0)
    donor[target[known]] = source[known]
    return donor


def _leaf_at(nodes: Nodes, positions: I32, index: Lists, leaves: I32) -> I32:
    """Which of `leaves`, nodes in rising order per instruction, is the element of each instruction's result."""
    node = nodes.top(positions)
    count = index.count()
    for depth in range(int(count.max(initial=0))):
        deep = np.flatnonzero(count > depth)
        node[deep] = nodes.shapes.child(node[deep], index.nth(deep, depth))
    found = np.where(node >= 0, nodes.base[positions] + node - nodes.shapes.begin[nodes.shape[positions]], -1)
    order = np.argsort(leaves, kind="stable")
    at = np.minimum(np.searchsorted(leaves[order], found), len(leaves) - 1)
    return np.where(leaves[order][at] == found, order[at], -1).astype(np.int32)


def _shapes(module: Module) -> tuple[I32, I64, U8]:
    """Per value: which shape it has, how many elements, and whether they are real or complex numbers."""
    seen: dict[tuple[int, ...], int] = {}
    code: list[int] = []
    elements: list[int] = []
    floating: list[bool] = []
    table, _ = module.shape_of
    for shape in table.protos:
        known = seen.setdefault((shape.element_type, *shape.dimensions), len(seen))
        code.append(known)
        if known == len(elements):
            elements.append(elements_of(shape))
            floating.append(shape.element_type in REAL_OR_COMPLEX)
    node = module.buffer_node
    codes = np.array([*code, len(seen)], dtype=np.int32)[np.where(node >= 0, table.kind[node], -1)]  # the last: none
    return codes, np.array([*elements, 0], dtype=np.int64)[codes], np.array([*floating, False], dtype=np.uint8)[codes]
