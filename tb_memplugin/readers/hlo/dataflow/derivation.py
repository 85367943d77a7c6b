"""Derivations: values computed element by element from others, as an updated weight from the weight.

Most derivations happen inside fusions. Only fusions that contribute to the program's results in this way are parsed,
breadth first from the results: updates are few among all fusions of a program. Of instructions that do several things
at once (bundles), each result is computed from some of the operands.
"""

import numpy as np

from tb_memplugin.model.arrays import I32, I64, U8, marked
from tb_memplugin.model.dataflow import Derivation, Derivations
from tb_memplugin.native.graph.walks import grouped, reach
from tb_memplugin.readers.hlo.dataflow.analysis import DataflowAnalysis
from tb_memplugin.readers.hlo.dataflow.fusions import (
    NOT_DERIVED,
    FusedResults,
    classify_opcodes,
    fused_results,
    operand_derivations,
)
from tb_memplugin.readers.hlo.dataflow.nodes import ResultNodes
from tb_memplugin.readers.hlo.dataflow.pass_through import START_RESULT_ELEMENT
from tb_memplugin.readers.hlo.module.tables import HloModule

COMBINABLE = {"all-reduce", "all-reduce-start"}
BundlePairs = tuple[I32, I32]  # columns: value of an operand, value of a result that is computed from it


def combined_collectives(dataflow: DataflowAnalysis) -> BundlePairs:
    """Return (operand, element) values of combined collectives: each element is computed from one operand alone."""
    nodes = dataflow.nodes
    positions = nodes.positions_of(COMBINABLE)
    counts = dataflow.module.operands.count()[dataflow.schedule.order[positions]]
    user, source, nth = nodes.operands_of(positions[nodes.shapes.child_count[nodes.top(positions)] == counts])
    target_nodes, source_nodes, _ = nodes.link(user, source, nodes.element(user, nth), nodes.top(source))
    source, target = dataflow.node_buffer[source_nodes], dataflow.node_buffer[target_nodes]
    known = (source >= 0) & (target >= 0)
    return source[known].astype(np.int32), target[known].astype(np.int32)


def multi_output_fusions(dataflow: DataflowAnalysis) -> FusedResults | None:
    """Find the results of fusions with several of them: compilers fuse unrelated operations, too."""
    nodes = dataflow.nodes
    positions = nodes.positions_of({"fusion"})
    positions = positions[nodes.shapes.child_count[nodes.top(positions)] > 1]
    if not len(positions):
        return None
    try:
        return fused_results(dataflow.module, dataflow, positions)
    except ValueError:  # a damaged body: each result counts as computed from all operands
        return None


def result_operands(results: FusedResults) -> BundlePairs:
    """Return (operand, result) values for each operand that a result is computed from."""
    row, source, _, _ = results.sources(*results.body.everything)
    target = results.value[row]
    known = (source >= 0) & (target >= 0) & (source != target)
    return source[known], target[known]


SLICING = {"slice", "dynamic-slice"}
JOINING = {"custom-call", "concatenate"}  # on TPUs, the custom call ConcatBitcast
DerivationColumns = tuple[I32, I32, I32, U8]  # columns as of Derivations
MAX_WAVES = 5  # of fusions parsed; an update rarely spans more than two


def find_derivations(module: HloModule, dataflow: DataflowAnalysis, elements: I64) -> Derivations:
    """Find every pair of values between arguments and results where one is derived from the other."""
    nodes, n = dataflow.nodes, len(elements)
    found = [_outside_fusions(module, dataflow, elements)]
    found += [sliced_prefetches(dataflow, elements), _offloaded(dataflow, elements)]
    found.append(_elementwise(*combined_collectives(dataflow)))
    carried_to, carried_from = dataflow.loop_carried
    begin, order = grouped(np.r_[*(known[1] for known in found), carried_to].astype(np.int32), n)
    back = np.r_[*(known[0] for known in found), carried_from].astype(np.int32)[order]
    fusion = nodes.is_opcode({"fusion"})
    frontier = _results(dataflow)
    for _ in range(MAX_WAVES):
        producers = dataflow.defined[np.flatnonzero(reach(begin, back, frontier))]
        positions = np.flatnonzero(marked(len(fusion), producers[producers >= 0]) & fusion).astype(np.int32)
        fusion[positions] = False
        if not len(positions):
            break
        try:
            found.append(_inside_fusions(module, dataflow, positions, elements))
        except ValueError:  # a damaged body concerns only derivations: those beyond it stay unknown
            break
        frontier = found[-1][0]
    return Derivations(*(np.concatenate(column) for column in zip(*found, strict=True)))


def updates_in_place(module: HloModule, dataflow: DataflowAnalysis, elements: I64) -> tuple[I32, I32]:
    """Return (source, target) values of all instructions that overwrite a part of an array, alone or in a fusion."""
    found = [_outside_fusions(module, dataflow, elements)]
    try:
        found.append(_inside_fusions(module, dataflow, dataflow.nodes.positions_of({"fusion"}), elements))
    except ValueError:  # a damaged body
        pass
    source, target, _, kind = (np.concatenate(column) for column in zip(*found, strict=True))
    in_place = kind == Derivation.IN_PLACE
    return source[in_place], target[in_place]


def sliced_prefetches(dataflow: DataflowAnalysis, elements: I64) -> DerivationColumns:
    """Find the values that are assembled from slices of one other value, as when TPUs prefetch a weight in pieces."""
    nodes, value = dataflow.nodes, dataflow.node_buffer
    user, operand = nodes.edges
    joined = nodes.is_opcode(JOINING)[user]
    user, piece = user[joined], value[nodes.base[operand[joined]]]
    produced = np.where(piece >= 0, dataflow.defined[piece], -1)
    sliced = (produced >= 0) & nodes.is_opcode(SLICING)[produced]
    origin = nodes.operand(np.maximum(produced, 0).astype(np.int32), 0)
    source = np.where(sliced, nodes.value_of(value, origin), -1)
    first = np.flatnonzero(np.diff(user, prepend=-1))  # edges are in order of user
    if not len(first):
        return _elementwise(user, user)
    one = np.minimum.reduceat(source, first) == np.maximum.reduceat(source, first)
    source, target = source[first], value[nodes.base[user[first]]]
    known = one & (source >= 0) & (target >= 0) & (elements[source] == elements[target])
    return _elementwise(source[known], target[known])


def _offloaded(dataflow: DataflowAnalysis, elements: I64) -> DerivationColumns:
    """Find the results of offloaded collectives, data formats and scatters."""
    late, value = dataflow.late, dataflow.node_buffer
    row, nth, target = late.results(value)
    first = row[nth == 0]
    source, target = late.operand_values(value, 0)[first], target[nth == 0]
    alone = late.operand_values(value, 1)[first] < 0
    combined_source, combined_target = late.pairs(value)
    source, target = np.r_[source, combined_source], np.r_[target, combined_target]
    alone = np.r_[alone, np.ones(len(combined_source), dtype=bool)]
    same = elements[source] == elements[target]
    kind = np.where(same, np.where(alone, Derivation.ELEMENTWISE, Derivation.IN_PLACE), Derivation.PART)
    known = (source >= 0) & (target >= 0) & (source != target) & (same | alone)
    steps = np.zeros(np.count_nonzero(known), dtype=np.int32)
    return source[known], target[known], steps, kind[known].astype(np.uint8)


def _elementwise(source: I32, target: I32) -> DerivationColumns:
    """Return derivations that take no steps."""
    steps, kind = np.zeros(len(source), dtype=np.int32), np.full(len(source), Derivation.ELEMENTWISE, dtype=np.uint8)
    return source.astype(np.int32), target.astype(np.int32), steps, kind


def _results(dataflow: DataflowAnalysis) -> I32:
    nodes = dataflow.nodes
    root = nodes.root(nodes.module.entry)
    node_buffer = dataflow.node_buffer[nodes.base[root] : nodes.base[root + 1]] if root >= 0 else np.empty(0, np.int32)
    return node_buffer[node_buffer >= 0].astype(np.int32)


def _outside_fusions(module: HloModule, dataflow: DataflowAnalysis, elements: I64) -> DerivationColumns:
    """Find the derivations through instructions of the schedule itself."""
    nodes = dataflow.nodes
    derivation, weights = classify_opcodes(module.opcode.strings)
    users = np.flatnonzero(derivation[nodes.opcode] != NOT_DERIVED).astype(np.int32)
    user, position, nth = nodes.operands_of(users)
    target = dataflow.node_buffer[_result_node(nodes, user)]
    source = nodes.value_of(dataflow.node_buffer, position)
    kind = operand_derivations(derivation[nodes.opcode[user]], nth, elements[target], elements[source])
    known = (source >= 0) & (target >= 0) & (source != target) & (kind != NOT_DERIVED)
    steps = weights[nodes.opcode[user]].astype(np.int32)
    return source[known], target[known].astype(np.int32), steps[known], kind[known]


def _result_node(nodes: ResultNodes, positions: I32) -> I32:
    """Return the node of each instruction's value; for the start of an operation, that is an element of its result."""
    node = nodes.top(positions)
    for opcode, element in START_RESULT_ELEMENT.items():
        starts = nodes.is_opcode({opcode})[positions]
        inner = nodes.element(positions[starts], element)
        node[starts] = np.where(inner >= 0, inner, node[starts])
    return nodes.node_at(positions, node)


def _inside_fusions(module: HloModule, dataflow: DataflowAnalysis, positions: I32, elements: I64) -> DerivationColumns:
    """Find the derivations of these fusions' results from their operands."""
    results = fused_results(module, dataflow, positions)
    body = results.body
    leaf, source, steps, kind = results.sources(body.kind, body.weight)
    target = results.value[leaf]
    known = (source >= 0) & (target >= 0) & (source != target)
    known &= (kind == Derivation.PART) | (elements[source] == elements[target])
    return source[known], target[known], steps[known], kind[known]
