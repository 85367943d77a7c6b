"""The changes that storing and computing in bf16 instead of f32 brings."""

from __future__ import annotations

import numpy as np

from tb_memplugin.analysis.advice.support.passes import ProgramPasses
from tb_memplugin.analysis.dataflow.graph import dataflow_graph, row_of_value
from tb_memplugin.analysis.dataflow.input_output_pairs import input_output_pairs
from tb_memplugin.analysis.replay.what_if import Change, resize_rows
from tb_memplugin.model.arrays import I64, Mask
from tb_memplugin.model.dataflow import ProductKind
from tb_memplugin.model.recording import Recording

WIDE, NARROW = "f32", {"bf16", "f16"}
CAST = """\
def narrow(tree):
    return jax.tree.map(lambda x: x.astype(jnp.bfloat16) if jnp.issubdtype(x.dtype, jnp.floating) else x, tree)

"""
WIDENED = f"the saving is smaller, because the compiler widens bf16 to {WIDE} in separate memory"


def wide_rows(recording: Recording) -> Mask:
    return recording.allocations.dtype.isin({WIDE})


def halve(recording: Recording, rows: I64) -> Change:
    return resize_rows(recording, rows, recording.allocations.size[rows] // 2)


def with_results(recording: Recording, rows: I64) -> I64:
    """Return these arguments, the results that return them updated, and what leads from one to the other in place."""
    graph, found, row = dataflow_graph(recording), input_output_pairs(recording), row_of_value(recording)
    back = row[found.value[np.isin(row[found.argument], rows)]]
    both = np.union1d(rows, back[back >= 0]).astype(np.int64)
    if graph is None:
        return both
    table, derived = recording.allocations, graph.values.derivations
    source, target = row[derived.source], row[derived.target]
    between = np.isin(source, rows) & (target >= 0) & (table.region[source] == table.region[target])
    between &= table.size[source] == table.size[target]
    return np.union1d(both, target[between]).astype(np.int64)


def casts_of(recording: Recording, passes: ProgramPasses, rows: I64) -> I64:
    """Return the copies of these rows in 16 bits that the compiler makes."""
    row, derived = row_of_value(recording), passes.values.derivations
    elements = passes.values.elements
    same = (elements[derived.source] == elements[derived.target]) & np.isin(row[derived.source], rows)
    found = row[derived.target[same]]
    found = np.unique(found[found >= 0]).astype(np.int64)
    casts: I64 = found[recording.allocations.dtype.isin(NARROW)[found] & ~passes.is_argument[found]]
    return casts


def from_kept_products(passes: ProgramPasses, rows: I64) -> Mask:
    """Mark the rows that are as large as a product among the rows, and are computed from it."""
    values, products = passes.values, passes.values.products
    multiplied = products.position[products.kind == ProductKind.PRODUCT]
    is_product = np.isin(passes.made[rows], multiplied)
    kept = passes.value[rows[is_product]]
    reads = np.isin(values.used_value, kept)
    read = values.elements[values.used_value[reads]] * 2**31 + values.use[reads]
    computed = values.elements[passes.value[rows]] * 2**31 + passes.made[rows]
    return np.isin(computed, read) & ~is_product
