"""Products of a program, that is, matrix products, convolutions and lookups, with the values of both of their sides."""

import numpy as np

from tb_memplugin.model.arrays import I32, I64, U8
from tb_memplugin.model.dataflow import ProductKind, Products
from tb_memplugin.model.text import Text
from tb_memplugin.readers.hlo.dataflow.analysis import DataflowAnalysis
from tb_memplugin.readers.hlo.dataflow.fusions import FusedComputations, FusedInstructions
from tb_memplugin.readers.hlo.dataflow.nodes import ResultNodes

# Libraries and kernels do most products of a GPU program: operands 0 and 1 are the sides, as in `__cublas$gemm`.
KINDS = {
    "dot": ProductKind.PRODUCT,
    "convolution": ProductKind.PRODUCT,
    "custom-call": ProductKind.PRODUCT,
    "gather": ProductKind.LOOKUP,
    "async-update": ProductKind.LOOKUP,  # with late operands, an offloaded gather
}
SIDES = (0, 1)
ProductColumns = tuple[I32, U8, I32, I32, U8]  # position and kind per product; product, value and side per operand


def find_products(dataflow: DataflowAnalysis) -> Products:
    """Find all products, those inside fusions included."""
    outside, inside = _outside_fusions(dataflow), _inside_fusions(dataflow)
    return Products(
        position=np.r_[outside[0], inside[0]],
        kind=np.r_[outside[1], inside[1]],
        product=np.r_[outside[2], inside[2] + len(outside[0])].astype(np.int32),
        value=np.r_[outside[3], inside[3]],
        side=np.r_[outside[4], inside[4]],
    )


def _outside_fusions(dataflow: DataflowAnalysis) -> ProductColumns:
    nodes = dataflow.nodes
    position, late = nodes.positions_of(set(KINDS) - {"async-update"}), dataflow.late.update
    position, first = np.r_[position, late], np.repeat((0, 1), (len(position), len(late)))
    operands = [_operands(nodes, position, first + side) for side in SIDES]
    both = (operands[0] >= 0) & (operands[1] >= 0)
    position, operands = position[both], [operand[both] for operand in operands]
    value = np.concatenate([dataflow.node_buffer[nodes.base[operand]] for operand in operands])
    product, side = np.tile(np.arange(len(position), dtype=np.int32), 2), np.repeat(SIDES, len(position))
    known = value >= 0
    kind = _kinds(Text(nodes.opcode[position], nodes.module.opcode.strings))
    return position, kind, product[known], value[known].astype(np.int32), side[known].astype(np.uint8)


def _operands(nodes: ResultNodes, positions: I32, nth: I64) -> I32:
    """Return the position of operand nth[i] of each instruction, -1 where it does not exist."""
    found = nodes.operand(positions, 0)
    for n in range(1, int(nth.max(initial=0)) + 1):
        found[nth == n] = nodes.operand(positions[nth == n], n)
    return found


def _inside_fusions(dataflow: DataflowAnalysis) -> ProductColumns:
    empty, no_kind = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.uint8)
    fusions = dataflow.fusions()
    positions = fusions.positions_with(fusions.opcode.isin(KINDS))
    called = dataflow.module.callees.nth(dataflow.schedule.order[positions], 0)
    try:
        body = FusedComputations(dataflow.module, called)
    except ValueError:  # a damaged body
        return empty, no_kind, empty, empty, no_kind
    row = np.flatnonzero(body.opcode.isin(KINDS) & (body.count > 1))
    # The fusion that each of them is in: bodies are stored one after the other.
    by_body = np.argsort(body.first, kind="stable")
    within = by_body[np.searchsorted(body.first[by_body], row, side="right") - 1]
    inside = row < body.stop[within]
    row, within = row[inside], within[inside]
    root = np.concatenate([body.operand[body.begin[row] + side] for side in SIDES])
    operands = FusedInstructions(
        dataflow, body, np.tile(within, 2), root.astype(np.int32), np.tile(positions[within], 2)
    )
    at, value, _, _ = operands.sources(*body.everything)
    known = value >= 0
    product, side = at % max(len(row), 1), at // max(len(row), 1)
    kind = _kinds(body.opcode.take(row))
    return positions[within], kind, product[known].astype(np.int32), value[known], side[known].astype(np.uint8)


def _kinds(opcode: Text) -> U8:
    return opcode.map(lambda name: KINDS.get(name, ProductKind.PRODUCT), ProductKind.PRODUCT, np.uint8)
