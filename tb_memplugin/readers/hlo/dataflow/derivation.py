"""Which values come of which, element by element: an updated weight of the weight, a masked gradient of the gradient.

Most of that happens inside fusions. Only those are opened that the program's results come of in this way, one wave
of them after another: a program's updates are few beside all that it fuses.
"""

from __future__ import annotations

import numpy as np

from tb_memplugin.model.arrays import I32, I64, U8
from tb_memplugin.model.dataflow import Derivation, Derivations
from tb_memplugin.native.graph.walks import derive, grouped, reach
from tb_memplugin.readers.hlo.dataflow.fusions import UNLIKE, Bodies, kinds, opcode_classes
from tb_memplugin.readers.hlo.dataflow.nodes import at, spread, within
from tb_memplugin.readers.hlo.lifetimes.uses import Dataflow
from tb_memplugin.readers.hlo.module import Module

BUNDLES = {"all-reduce", "all-reduce-start"}
WAVES = 5  # of fusions opened: an update is rarely spread over more than two
WORK = 20_000_000  # instructions looked at inside fusions: bounds what a damaged file may cost


def derivations(module: Module, dataflow: Dataflow, elements: I64) -> Derivations:
    """Every pair of values of which one comes of the other between the arguments and the results."""
    nodes, n = dataflow.nodes, len(elements)
    if not nodes.total:
        none = np.empty(0, dtype=np.int32)
        return Derivations(none, none, none, none.astype(np.uint8))
    found = [_plain(module, dataflow, elements)]
    fro, to = bundles(dataflow)
    nothing = np.zeros(len(fro), dtype=np.int32)
    found.append((fro, to, nothing, nothing.astype(np.uint8)))
    carried_to, carried_from = dataflow.carries
    begin, order = grouped(np.r_[found[0][1], to, carried_to].astype(np.int32), n)
    back = np.r_[found[0][0], fro, carried_from].astype(np.int32)[order]
    fusion = nodes.is_opcode({"fusion"})
    wanted = _results(dataflow)
    for _ in range(WAVES):
        made = dataflow.defined[np.flatnonzero(reach(begin, back, wanted))]
        asked = np.zeros(len(fusion), dtype=bool)
        asked[made[made >= 0]] = True
        positions = np.flatnonzero(asked & fusion).astype(np.int32)
        fusion[positions] = False
        if not len(positions):
            break
        try:
            found.append(_inside(module, dataflow, positions, elements))
        except ValueError:  # a damaged body, which nothing else needs: what is alike stays unknown from there on
            break
        wanted = found[-1][0]
    return Derivations(*(np.concatenate(column) for column in zip(*found, strict=True)))


def bundles(dataflow: Dataflow) -> tuple[I32, I32]:
    """(operand, element) values of collectives that compilers combine: each element comes of one operand alone."""
    nodes, module = dataflow.nodes, dataflow.module
    positions = nodes.where(BUNDLES)
    rows = dataflow.schedule.order[positions]
    counts = module.operands.count()[rows]
    combined = nodes.shapes.child_count[nodes.top(positions)] == counts
    positions, rows, counts = positions[combined], rows[combined], counts[combined]
    user, nth = np.repeat(positions, counts), within(counts)
    operand = module.operands.values[spread(module.operands.begin[rows], counts)]
    source = at(dataflow.schedule.position, operand)
    to, fro, _ = nodes.link(user, source, nodes.element(user, nth), nodes.top(source))
    source, target = dataflow.shown[fro], dataflow.shown[to]
    known = (source >= 0) & (target >= 0)
    return source[known].astype(np.int32), target[known].astype(np.int32)


def _results(dataflow: Dataflow) -> I32:
    nodes = dataflow.nodes
    root = nodes.root(nodes.module.entry)
    shown = dataflow.shown[nodes.base[root] : nodes.base[root + 1]] if root >= 0 else np.empty(0, np.int32)
    return shown[shown >= 0].astype(np.int32)


Pairs = tuple[I32, I32, I32, U8]  # columns as of Derivations


def _plain(module: Module, dataflow: Dataflow, elements: I64) -> Pairs:
    """Through the instructions of the schedule itself."""
    nodes = dataflow.nodes
    likeness, weights = opcode_classes(module.opcode.strings)
    users = np.flatnonzero(likeness[nodes.opcode] != UNLIKE).astype(np.int32)
    rows = dataflow.schedule.order[users]
    counts = module.operands.count()[rows]
    user = np.repeat(users, counts)
    operand = module.operands.values[spread(module.operands.begin[rows], counts)]
    position = at(dataflow.schedule.position, operand)
    target = dataflow.shown[nodes.base[user]]
    source = np.where(position >= 0, dataflow.shown[nodes.base[np.maximum(position, 0)]], -1)
    kind = kinds(likeness[nodes.opcode[user]], within(counts), elements[target], elements[source])
    known = (source >= 0) & (target >= 0) & (source != target) & (kind != UNLIKE)
    steps = weights[nodes.opcode[user]].astype(np.int32)
    return source[known].astype(np.int32), target[known].astype(np.int32), steps[known], kind[known]


def _inside(module: Module, dataflow: Dataflow, positions: I32, elements: I64) -> Pairs:
    """Through these fusions: what their results come of among their operands."""
    nodes = dataflow.nodes
    called = module.callees.nth(dataflow.schedule.order[positions], 0)
    positions, called = positions[called >= 0], called[called >= 0]
    body = Bodies(module, called)
    # A body's root is its result, or the tuple of its results.
    root = body.index.rows(module.computations["root_id"][called])
    inner = np.where(root >= 0, body.count[root], 0)
    several = (root >= 0) & body.is_tuple[root]
    counts = np.where(root < 0, 0, np.where(several, inner, 1))
    which, nth = np.repeat(np.arange(len(called)), counts), within(counts)
    leaf = root[which]
    listed = several[which]
    leaf[listed] = body.operand[body.begin[leaf[listed]] + nth[listed]]
    node = np.where(
        listed,
        nodes.shapes.child(nodes.top(positions)[which], nth.astype(np.int64)),
        nodes.top(positions)[which],
    )
    made = nodes.base[positions[which]] + node - nodes.shapes.begin[nodes.shape[positions[which]]]
    good = (leaf >= 0) & (node >= 0)
    which, leaf, made = which[good], leaf[good], made[good]
    target = dataflow.shown[made]
    at, parameter, steps, kind = derive(
        body.first[which],
        body.stop[which],
        leaf.astype(np.int32),
        body.begin,
        body.operand,
        body.kind,
        body.weight,
        WORK,
    )
    number = body.parameter_number[parameter]
    rows = dataflow.schedule.order[positions[which[at]]]
    # A number of any size may be in the file.
    inside = body.is_parameter[parameter] & (number >= 0) & (number < module.operands.count()[rows])
    operand = np.full(len(rows), -1, dtype=np.int64)
    operand[inside] = module.operands.values[module.operands.begin[rows[inside]] + number[inside]]
    position = np.where(operand >= 0, dataflow.schedule.position[operand], -1)
    source = np.where(position >= 0, dataflow.shown[nodes.base[np.maximum(position, 0)]], -1).astype(np.int32)
    target = target[at].astype(np.int32)
    known = (source >= 0) & (target >= 0) & (source != target)
    known &= (kind == Derivation.PART) | (elements[source] == elements[target])
    return source[known], target[known], steps[known], kind[known]
