"""Schedule graphs of every stored program: their own order, other orders, and recomputed layers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs.stored import Stored, stored_programs

from tb_memplugin.analysis.advice.jax import rematerialization
from tb_memplugin.analysis.advice.jax.rematerialization import layer_nodes, repeated_layers
from tb_memplugin.analysis.advice.support.passes import program_passes
from tb_memplugin.analysis.replay.program_graph import ProgramGraph, body_graph, program_graph
from tb_memplugin.analysis.replay.recompute import Recomputation
from tb_memplugin.analysis.replay.schedule_graph import ScheduleGraph, lower_peak, program_loops
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.arrays import I32
from tb_memplugin.model.recording import Recording

STORED = {str(stored): stored for stored in stored_programs()}
# A graph counts a buffer from its first to its last access. Compilers let buffers share memory more closely, and
# allocate less for parts of buffers, above all in programs with asynchronous copies.
CLOSE = (0.97, 1.15)
# Their buffers wait for the host, for other cores or for kernels, and give their memory to others meanwhile.
NOT_CLOSE = {"flash_attention.tpu7x", "offloaded_activations.v5p", "offloaded_state.v5e", "recommender.v4"}


def main_memory(stored: Stored) -> Recording:
    return next(r for r in stored.recordings if r.program is not None and r.program.memory_space == 0)


def graph_of(name: str) -> ProgramGraph:
    found = program_graph(main_memory(STORED[name]))
    assert found is not None
    return found


def in_order(graph: ScheduleGraph, order: I32) -> bool:
    step = np.empty(graph.nodes, dtype=np.int64)
    step[order] = np.arange(graph.nodes)
    return bool((step[graph.source] < step[graph.target]).all())


@pytest.mark.parametrize("name", STORED)
def test_the_program_s_own_order_has_the_recording_s_peak(name: str) -> None:
    program = graph_of(name)
    found = program.graph.peak(program.graph.own_order)
    close = CLOSE[0] <= found / peak(program.recording).bytes <= CLOSE[1]
    titles = [piece.title for piece in rematerialization.advise(program.recording)]
    assert close or (name in NOT_CLOSE and not titles)


@pytest.mark.parametrize("name", STORED)
def test_the_program_s_own_order_is_an_order(name: str) -> None:
    graph = graph_of(name).graph
    assert (graph.source < graph.target).all()
    assert graph.constant >= 0
    assert (graph.workspace >= 0).all()


@pytest.mark.parametrize("name", STORED)
def test_a_lower_peak_is_that_of_an_order_and_no_higher(name: str) -> None:
    graph = graph_of(name).graph
    order = lower_peak(graph, graph.own_order)
    assert sorted(order.tolist()) == list(range(graph.nodes))
    assert in_order(graph, order)
    assert graph.peak(order) <= graph.peak(graph.own_order)


@pytest.mark.parametrize("name", STORED)
def test_bodies_of_loops_are_graphs_of_their_own(name: str) -> None:
    recording = main_memory(STORED[name])
    loops = program_loops(recording)
    for first, position in zip(loops.first.tolist(), loops.position.tolist(), strict=True):
        body = body_graph(recording, position)
        assert body is not None
        assert first <= body.position[0] <= body.position[-1] < position
        assert body.graph.peak(body.graph.own_order) <= peak(recording).bytes * CLOSE[1]
    outside = next((p for p in range(recording.length) if p not in set(loops.position.tolist())), None)
    assert outside is None or body_graph(recording, outside) is None


@pytest.mark.parametrize("name", STORED)
def test_recomputed_layers_keep_every_order_of_the_program(name: str) -> None:
    program = graph_of(name)
    passes = program_passes(program.recording)
    assert passes is not None
    repeated = repeated_layers(program.recording, passes)
    for layers in [*passes.layers, *([repeated] if repeated else [])]:
        again = Recomputation(program, layer_nodes(program, passes, layers))
        graph, base = again.graph, program.graph
        assert graph.nodes == base.nodes + len(again.copies)
        order = again.order
        if len(order) == graph.nodes:
            assert in_order(graph, order)
            least = int(graph.workspace.max(initial=0))
            assert graph.constant + least <= graph.peak(order)
        assert (again.layers.forward[again.copies] >= 0).all()  # only the forward pass is run again


def random_graph(seed: int, nodes: int) -> ScheduleGraph:
    rng = np.random.default_rng(seed)
    source = rng.integers(0, nodes, 2 * nodes).astype(np.int32)
    target = rng.integers(0, nodes, 2 * nodes).astype(np.int32)
    edges = source < target
    buffer = rng.integers(0, nodes, 3 * nodes).astype(np.int32)
    node = rng.integers(0, nodes, 3 * nodes).astype(np.int32)
    return ScheduleGraph(
        source[edges], target[edges], rng.integers(0, 100, nodes), buffer, node, rng.integers(0, 100, nodes), 7
    )


@given(st.integers(0, 2**32), st.integers(1, 40))
@settings(max_examples=60)
def test_live_bytes_are_those_of_buffers_between_their_first_and_last_access(seed: int, nodes: int) -> None:
    graph = random_graph(seed, nodes)
    priority = np.random.default_rng(seed + 1).random(nodes)
    order = graph.sorted_by(priority)
    assert in_order(graph, order)
    step = {node: i for i, node in enumerate(order.tolist())}
    live = [graph.constant + int(graph.workspace[node]) for node in order.tolist()]
    for buffer, size in enumerate(graph.size.tolist()):
        at = [step[node] for node in graph.node[graph.buffer == buffer].tolist()]
        for i in range(min(at, default=0), max(at, default=-1) + 1):
            live[i] += size
    assert graph.live_bytes(order).tolist() == live
    assert graph.peak(lower_peak(graph, order)) <= max(live)
