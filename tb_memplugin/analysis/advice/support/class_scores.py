"""Advice to return fewer scores of classes, such as logits over a vocabulary, and the results that are such scores."""

import numpy as np

from tb_memplugin.analysis.advice.model import Advice, AdviceKind, saving, sort_by_size
from tb_memplugin.analysis.advice.support.passes import ProgramPasses
from tb_memplugin.analysis.dataflow.graph import dataflow_graph, row_of_value
from tb_memplugin.analysis.dataflow.input_output_pairs import input_output_pairs
from tb_memplugin.analysis.dataflow.training_step import training_step
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.replay.what_if import resize_rows
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.arrays import I64, Mask, dimensions
from tb_memplugin.model.dataflow import Derivation, ProductKind
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.program import Backend
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import bytes_text

# Scores have this many times the elements of all inputs. A result is either tokens or scores of a vocabulary, and no
# size is in between: on the stored programs, all factors from 2 to 64 give the same 5 pieces.
MANY = 16
MAX_RESULTS = 8  # the largest ones


def _class_scores(recording: Recording, passes: ProgramPasses, results: I64) -> tuple[I64, I64]:
    """Return the results that a last layer widens to many more elements than the inputs have.

    Also return the rows of all values of the last layer that have as many elements, the results included.
    A last layer multiplies its input by weights, and widens it if its result has more elements than the input. Keys and
    values of attention, images and sounds come from layers that do not widen.
    """
    inputs, positions = _inputs(recording, passes)
    elements = passes.values.elements
    updated = row_of_value(recording)[input_output_pairs(recording).value]
    large = results[~np.isin(results, updated) & (elements[passes.value[results]] >= MANY * inputs)]
    found, computed = [], [np.empty(0, dtype=np.int64)]
    for row in sort_by_size(recording, large)[:MAX_RESULTS].tolist() if inputs else ():
        scores = int(elements[passes.value[row]])
        *_, classes = 0, *dimensions(recording.allocations.shape[row])
        layer = _last_layer(recording, passes, row)
        if layer is not None and classes > 1 and scores // classes <= positions:
            found.append(row)
            computed.append(layer)
    return np.array(found, dtype=np.int64), np.unique(np.concatenate(computed))


def _inputs(recording: Recording, passes: ProgramPasses) -> tuple[int, int]:
    """Return the elements of all inputs, and those of the largest one that has several dimensions."""
    values = passes.values
    is_integer = values.floating[passes.value] == 0
    rows = np.flatnonzero(passes.is_argument & ((roles(recording) == Role.INPUT) | is_integer))
    count = values.elements[passes.value[rows]]
    several = np.array(["," in recording.allocations.shape[row].partition("{")[0] for row in rows.tolist()], dtype=bool)
    return int(count.sum()), int(count[several].max(initial=0))


def _last_layer(recording: Recording, passes: ProgramPasses, row: int) -> I64 | None:
    """Return the rows from the product that computes this result, with as many elements; None without a product."""
    graph, values = dataflow_graph(recording), passes.values
    assert graph is not None
    value = int(passes.value[row])
    before = graph.backward.reach(np.array([value]))[: len(values)]
    same = before & (values.elements == values.elements[value]) & (values.producer >= 0)
    products, sides = values.products, values.products.product
    is_product = (products.kind == ProductKind.PRODUCT) & np.isin(products.position, values.producer[same])
    if not is_product.any():
        return None
    position = int(products.position[is_product].max())
    mine = is_product & (products.position == position)
    read = products.value[mine[sides]]
    read = read[~_from_parameters(recording, passes)[read]]
    if not len(read) or int(values.elements[read].max()) >= int(values.elements[value]):
        return None
    rows = row_of_value(recording)[np.flatnonzero(same & (values.producer >= position))]
    return np.unique(rows[rows >= 0]).astype(np.int64)


def _from_parameters(recording: Recording, passes: ProgramPasses) -> Mask:
    """Mark the values of parameters, and their copies and casts."""
    values, row = passes.values, row_of_value(recording)
    found: Mask = (values.argument >= 0) & (row >= 0) & (roles(recording)[np.maximum(row, 0)] == Role.PARAMETER)
    whole = values.derivations.kind == Derivation.ELEMENTWISE
    source, target = values.derivations.source[whole], values.derivations.target[whole]
    found[target[found[source]]] = True
    return found


MIN_RESULT_SHARE = 10  # of the peak; on the stored programs, a fifth and a hundredth give the same 5 pieces, a half 4


def advise_class_scores(recording: Recording, passes: ProgramPasses, results: I64) -> Advice | None:
    """Advise on results of inference of which callers usually need few, such as logits over a vocabulary."""
    size, dtype = recording.allocations.size, recording.allocations.dtype
    if training_step(recording) is not None:
        return None
    rows, computed = _class_scores(recording, passes, results)
    if not len(rows) or MIN_RESULT_SHARE * int(size[rows].sum()) < peak(recording).bytes:
        return None
    # On CPU, f32 results are computed in separate memory before they are cast.
    is_wide = bool(dtype.isin({"f32"})[rows].all()) and recording.backend is not Backend.CPU
    gone = resize_rows(recording, computed, np.zeros_like(computed))
    halved = saving(recording, gone, resize_rows(recording, rows, size[rows] // 2)) if is_wide else None
    saved = halved or saving(recording, gone)
    if saved is None:
        return None
    ordered, bytes_returned = sort_by_size(recording, rows), int(size[rows].sum())
    return Advice(
        kind=AdviceKind.OUTPUTS,
        title=f"Return less than {recording.allocations.shape[int(ordered[0])].partition('{')[0]}",
        sentence=f"{bytes_text(bytes_returned)} of results have many times more elements than the inputs. Callers "
        "usually need a part of them, such as the last position. Computing only that "
        f"{saved.effect}{'; the least is for returning all in bf16' if halved else ''}.",
        change="x = x[:, -1:]  # before the last layer, if only the next token is needed"
        + ("; otherwise return logits.astype(jnp.bfloat16)" if halved else ""),
        rows=ordered,
        bytes=bytes_returned,
        saving=saved,
    )
