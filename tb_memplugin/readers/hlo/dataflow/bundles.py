"""Instructions that do several things at once: each of their results is computed from some of their operands."""

from __future__ import annotations

import numpy as np

from tb_memplugin.model.arrays import I32
from tb_memplugin.readers.hlo.dataflow.analysis import DataflowAnalysis
from tb_memplugin.readers.hlo.dataflow.fused_results import FusedResults, fused_results
from tb_memplugin.readers.hlo.dataflow.nodes import expand_ranges, range_offsets, take_or_missing

COMBINABLE = {"all-reduce", "all-reduce-start"}
BundlePairs = tuple[I32, I32]  # columns: value of an operand, value of a result that is computed from it


def combined_collectives(dataflow: DataflowAnalysis) -> BundlePairs:
    """Return (operand, element) values of combined collectives: each element is computed from one operand alone."""
    nodes, module = dataflow.nodes, dataflow.module
    positions = nodes.positions_of(COMBINABLE)
    rows = dataflow.schedule.order[positions]
    counts = module.operands.count()[rows]
    combined = nodes.shapes.child_count[nodes.top(positions)] == counts
    positions, rows, counts = positions[combined], rows[combined], counts[combined]
    nth = range_offsets(counts, nodes.budget)
    user = np.repeat(positions, counts)
    operand = module.operands.values[expand_ranges(module.operands.begin[rows], counts, nodes.budget)]
    source = take_or_missing(dataflow.schedule.position, operand)
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
