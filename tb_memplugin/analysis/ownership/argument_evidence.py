"""Evidence for the roles of arguments that no update reveals, from data flow and from the pytrees of the arguments.

Products distinguish them, because a product combines data with a weight:

- an argument that is multiplied with data, or with a value computed from several arguments, is a parameter;
- an argument that is multiplied with parameters is data, and so are values computed from it;
- an argument that is multiplied with a cotangent into a weight's gradient is data;
- an argument in which data is looked up, such as an embedding, is a parameter;
- integers of 16 bits and more are data. Narrower ones may be quantized weights.

Each decision is evidence for others, so they are made in rounds. If products do not decide, the pytree does: an
argument gets the role of its nearest relatives, if these all have one. If no argument is known to be data, an array
beside a pytree with several leaves is.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from tb_memplugin.analysis.dataflow.graph import NOTHING, SEVERAL, DataflowGraph, dataflow_graph
from tb_memplugin.analysis.dataflow.training_step import TrainingStep
from tb_memplugin.analysis.ownership.model_paths import argument_path
from tb_memplugin.model.arrays import I32, U8, Mask, marked
from tb_memplugin.model.dataflow import ProductKind
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.lazy import cached_property
from tb_memplugin.model.recording import Recording
from tb_memplugin.native.graph.walks import owners

ROOT_KEYS = {"args": 2}  # a positional argument is `args[0]`


def _path(scope: str) -> tuple[str, ...]:
    path = argument_path(scope)
    root = ROOT_KEYS.get(path[0], 1) if path else 0
    return (".".join(path[:root]), *path[root:]) if path else ()


def complete_trees(paths: list[tuple[str, ...]], chosen: Mask) -> Mask:
    """Mark the leaves of arguments that have several leaves, all of which are chosen."""
    leaves, found = Counter(path[0] for path in paths if path), Counter[str]()
    for i in np.flatnonzero(chosen).tolist():
        found.update(paths[i][:1])
    return np.array([bool(path) and leaves[path[0]] > 1 and leaves[path[0]] == found[path[0]] for path in paths], bool)


MAX_ROUNDS = 16  # each round decides at least one more layer


@dataclass(frozen=True, eq=False)
class KnownArguments:
    """The arguments of a program, with their roles, which are UNKNOWN if they must be decided."""

    argument: I32  # values
    role: U8
    recording: Recording

    @cached_property
    def path(self) -> list[tuple[str, ...]]:
        """The path of each argument in its pytree, or (). Found on access, as a program may have thousands."""
        graph = dataflow_graph(self.recording)
        if graph is None:
            return [()] * len(self.argument)
        produced = graph.values.producer[self.argument].tolist()
        return [_path(graph.program.op_name[at]) if at >= 0 else () for at in produced]


def decide_roles(graph: DataflowGraph, known: KnownArguments, step: TrainingStep | None) -> U8:
    """Return the role of each argument: the known one, or PARAMETER or INPUT if products or relatives decide."""
    role = known.role.copy()
    if step is not None:
        graph = step.turn
        _find_data_in_gradients(graph, known.argument, role, step)
    for _ in range(MAX_ROUNDS):
        open_before = np.count_nonzero(role == Role.UNKNOWN)
        if not open_before:
            break
        _decide_by_products(graph, known.argument, role)
        for decide in (_by_relatives, _by_size, _by_containers):
            if np.count_nonzero(role == Role.UNKNOWN) == open_before:
                decide(graph, known, role)
        if np.count_nonzero(role == Role.UNKNOWN) == open_before:
            break
    return role


def _by_relatives(graph: DataflowGraph, known: KnownArguments, role: U8) -> None:
    """Give each unknown argument the role of the arguments that share most of its path, if these all have one role."""
    paths, roles_below = known.path, dict[tuple[str, ...], set[int]]()
    for path, of_path in zip(paths, role.tolist(), strict=True):
        if of_path in (Role.PARAMETER, Role.INPUT):
            for depth in range(1, len(path) + 1):
                roles_below.setdefault(path[:depth], set()).add(of_path)
    for i in np.flatnonzero(role == Role.UNKNOWN).tolist():
        nearest = next((found for d in range(len(paths[i]), 0, -1) if (found := roles_below.get(paths[i][:d]))), set())
        if len(nearest) == 1:
            role[i] = next(iter(nearest))


def _by_containers(graph: DataflowGraph, known: KnownArguments, role: U8) -> None:
    """Give unknown arrays the role INPUT if the only other arguments are pytrees of several unknown leaves or more."""
    if (role == Role.INPUT).any():
        return
    leaves = Counter(path[0] for path in known.path if path)
    alone = [i for i in np.flatnonzero(role == Role.UNKNOWN).tolist() if len(known.path[i]) == 1]
    if sum(count > 1 for count in leaves.values()) == 1 and alone:
        role[alone] = Role.INPUT


def _by_size(graph: DataflowGraph, known: KnownArguments, role: U8) -> None:
    """Set the role of the largest of several arguments that are combined and then multiplied with a parameter to INPUT.

    Without other data, it is the data: the scales and statistics with which it is combined first are smaller.
    """
    products, argument = graph.values.products, known.argument
    if (role == Role.INPUT).any() or not (role == Role.PARAMETER).any():
        return
    owner = _contributors(graph, argument, role)
    sides = [_side_owners(graph, owner, side) for side in (0, 1)]
    found = [(products.position[i], i, side) for side in (0, 1) for i in np.flatnonzero(
        (sides[side] == SEVERAL) & (sides[1 - side] == NOTHING)
    ).tolist()]  # fmt: skip
    if not found:
        return
    _, product, side = min(found)
    values = products.value[(products.product == product) & (products.side == side)]
    inside = graph.backward.reach(values)[argument] & (role == Role.UNKNOWN)
    if inside.any():
        role[np.argmax(np.where(inside, graph.values.elements[argument], -1))] = Role.INPUT


def _decide_by_products(graph: DataflowGraph, argument: I32, role: U8) -> None:
    """Set the role of each unknown argument by the first product that decides it."""
    products, data = graph.values.products, graph.nodes
    owner = _contributors(graph, argument, role)
    sides = [_side_owners(graph, owner, side) for side in (0, 1)]
    from_parameters = graph.forward.reach(argument[role == Role.PARAMETER])[: len(graph.values)]
    of_parameters = from_parameters[products.value]
    with_parameters = [marked(len(products), products.product[of_parameters & (products.side == i)]) for i in (0, 1)]
    votes: list[tuple[I32, I32, U8]] = []  # argument, position, role
    for side in (0, 1):
        own, other = sides[side], sides[1 - side]
        single = (own >= 0) & (own < data)
        lookup = products.kind == ProductKind.LOOKUP
        mixed = (other == data) | (other == SEVERAL)
        weight = single & mixed & (~lookup | (side == 0))
        input_ = single & (other == NOTHING) & with_parameters[1 - side] | single & lookup & (side == 1)
        for chosen, decided in ((weight, Role.PARAMETER), (input_, Role.INPUT)):
            at = np.flatnonzero(chosen)
            votes.append((own[at], products.position[at], np.full(len(at), decided, dtype=np.uint8)))
    voted, position, verdict = (np.concatenate(column) for column in zip(*votes, strict=True))
    # An input meets data, too, after it was multiplied with a parameter.
    order = np.lexsort((position, verdict != Role.INPUT, voted))
    first = order[np.diff(voted[order], prepend=-1) != 0]
    number = np.full(len(graph.values), -1, dtype=np.int64)
    number[argument] = np.arange(len(argument))
    role[number[voted[first]]] = verdict[first]


def _find_data_in_gradients(graph: DataflowGraph, argument: I32, role: U8, step: TrainingStep) -> None:
    """Set the role of unknown arguments that are multiplied into a gradient, as x in a weight's gradient `x.T @ d`."""
    values, products = graph.values, graph.values.products
    owner = _contributors(graph, argument, role)
    gradients = marked(graph.length, values.producer[step.gradient & (values.producer >= 0)])
    gradients[values.use[step.update_reads]] = True
    data = np.zeros(graph.nodes + 1, dtype=bool)
    for side in (0, 1):
        own = _side_owners(graph, owner, side)
        data[own[(own >= 0) & gradients[products.position] & (products.kind == ProductKind.PRODUCT)]] = True
    role[data[argument] & (role == Role.UNKNOWN)] = Role.INPUT


def _contributors(graph: DataflowGraph, argument: I32, role: U8) -> I32:
    """Return the unknown argument that each node is computed from, beside parameters; graph.nodes: data; or SEVERAL."""
    values = graph.values
    owner = np.full(graph.nodes, NOTHING, dtype=np.int32)
    unknown = argument[role == Role.UNKNOWN]
    owner[unknown] = unknown
    owner[argument[(role != Role.UNKNOWN) & (role != Role.PARAMETER)]] = graph.nodes
    counts = np.ones(graph.nodes, dtype=np.uint8)
    counts[: len(values)] = values.elements > 1
    source, target = graph.edges
    for _ in range(2):  # around loops
        owners(owner, source, target, counts)
    return owner


def _side_owners(graph: DataflowGraph, owner: I32, side: int) -> I32:
    """Return the contributor of one side of each product: of its values if they have the same, SEVERAL otherwise."""
    products = graph.values.products
    which = (products.side == side) & (graph.values.elements[products.value] > 1)
    product, contributor = products.product[which], owner[products.value[which]]
    lowest = np.full(len(products), np.iinfo(np.int32).max, dtype=np.int32)
    highest = np.full(len(products), NOTHING, dtype=np.int32)
    counted = contributor != NOTHING
    np.minimum.at(lowest, product[counted], contributor[counted])
    np.maximum.at(highest, product[counted], contributor[counted])
    return np.select([lowest == np.iinfo(np.int32).max, lowest == highest], [NOTHING, lowest], SEVERAL).astype(np.int32)
