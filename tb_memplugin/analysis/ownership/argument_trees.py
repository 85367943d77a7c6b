"""The pytrees of a program's arguments: `params['layer_0']['up']` and `params['layer_1']['up']` are relatives."""

from __future__ import annotations

from collections import Counter

import numpy as np

from tb_memplugin.analysis.dataflow.graph import dataflow_graph
from tb_memplugin.analysis.ownership.model_paths import argument_path
from tb_memplugin.model.arrays import I32, U8, Mask
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.recording import Recording

ROOT_KEYS = {"args": 2}  # a positional argument is `args[0]`


def argument_paths(recording: Recording, arguments: I32) -> list[tuple[str, ...]]:
    """Return the path of each argument value in the pytree of its argument, () if it is unknown."""
    graph, program = dataflow_graph(recording), recording.program
    if graph is None or program is None:
        return [()] * len(arguments)
    return [_path(program.scope[at]) if at >= 0 else () for at in graph.values.producer[arguments].tolist()]


def _path(scope: str) -> tuple[str, ...]:
    path = argument_path(scope)
    root = ROOT_KEYS.get(path[0], 1) if path else 0
    return (".".join(path[:root]), *path[root:]) if path else ()


def nearest_relatives(paths: list[tuple[str, ...]], role: U8) -> None:
    """Give each unknown argument the role of those that share the longest part of its path, if they all have one."""
    roles_below: dict[tuple[str, ...], set[int]] = {}
    for path, known in zip(paths, role.tolist(), strict=True):
        if known in (Role.PARAMETER, Role.INPUT):
            for depth in range(1, len(path) + 1):
                roles_below.setdefault(path[:depth], set()).add(known)
    for i in np.flatnonzero(role == Role.UNKNOWN).tolist():
        nearest = next((found for d in range(len(paths[i]), 0, -1) if (found := roles_below.get(paths[i][:d]))), set())
        if len(nearest) == 1:
            role[i] = next(iter(nearest))


def arrays_beside_containers(paths: list[tuple[str, ...]], role: U8) -> None:
    """Give unknown arrays the role INPUT if the only other arguments are pytrees of several unknown leaves or more."""
    leaves = Counter(path[0] for path in paths if path)
    containers = {root for root, count in leaves.items() if count > 1}
    alone = [i for i in np.flatnonzero(role == Role.UNKNOWN).tolist() if len(paths[i]) == 1]
    if len(containers) == 1 and alone:
        role[alone] = Role.INPUT


def complete_trees(paths: list[tuple[str, ...]], chosen: Mask) -> Mask:
    """Mark the leaves of arguments with several leaves, all of them chosen."""
    leaves, found = Counter(path[0] for path in paths if path), Counter[str]()
    for i in np.flatnonzero(chosen).tolist():
        found.update(paths[i][:1])
    return np.array([bool(path) and leaves[path[0]] > 1 and leaves[path[0]] == found[path[0]] for path in paths], bool)
