"""Advice on the order of operations: XLA's latency-hiding scheduler may let weight gradients wait for the end.

That scheduler starts communication early and fills the time with other operations. Until a weight gradient is computed,
its layer's activations stay in memory. Without the scheduler, XLA runs operations in an order that frees memory. The
advice is given if a heuristic search finds such an order; for TPUs, if XLA's depth-first scheduler does.
"""

from collections.abc import Iterator

import numpy as np

from tb_memplugin.analysis.advice.model import Advice, AdviceKind, Work, promise, sort_by_size
from tb_memplugin.analysis.advice.support.arguments import function_name
from tb_memplugin.analysis.replay.program_graph import ProgramGraph, program_graph
from tb_memplugin.analysis.replay.schedule_graph import depth_first
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.arrays import I32, I64
from tb_memplugin.model.program import Backend
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import bytes_text

# A fifth and a tenth of the peak. Smaller predictions often saved nothing when compiled: once one of 14 % on TPU.
MIN_SHARE = {Backend.TPU: 5, Backend.GPU: 10}
# The graph must repeat the peak to a fiftieth, or its orders are not the program's. On the stored programs, every limit
# from a fifth to a thousandth gives the same pieces.
EXACT = 50
MAX_NODES = 50_000
OPTIONS = {
    Backend.TPU: "xla_tpu_enable_latency_hiding_scheduler",
    Backend.GPU: "xla_gpu_enable_latency_hiding_scheduler",
}
CODE = (
    "{function} = jax.jit({function}, compiler_options={{'{option}': False}})  # other arguments of jax.jit as before"
)
ORDERED = """

# Or keep the overlap, and let the next layer's backward pass wait for this layer's weight gradients:
@jax.custom_vjp
def in_order(tree):
    return tree

in_order.defvjp(lambda tree: (tree, None), lambda _, gradients: (jax.lax.optimization_barrier(gradients),))
# at the beginning of each layer: params, x = in_order((params, x))"""


def advise(recording: Recording) -> Iterator[Advice]:
    """Yield a piece if the compiler's order costs much."""
    backend = recording.backend
    program = program_graph(recording) if backend in OPTIONS else None
    if program is None or not 0 < program.graph.nodes <= MAX_NODES:
        return
    graph, before = program.graph, peak(recording).bytes
    own = graph.peak(graph.own_order)
    least = graph.peak(program.lower_order)
    if EXACT * abs(own - before) > before or MIN_SHARE[backend] * (before - least) < before:
        return
    order = depth_first(graph) if backend is Backend.TPU else program.lower_order
    found = before - graph.peak(order)
    if MIN_SHARE[backend] * found < before:
        return
    # When compiled for GPUs, XLA's order without the scheduler saved 0.68 to 1 of the best order's saving.
    expected = found if backend is Backend.TPU else 4 * found // 5
    saved = promise(recording, expected, 3 * found // 5, max(found, before - least))
    if saved is None:
        return
    rows = _waiting(program, order)
    size = int(recording.allocations.size[rows].sum())
    yield Advice(
        kind=AdviceKind.SCHEDULE,
        title="Turn off the latency-hiding scheduler",
        sentence=f"{bytes_text(size)} at the peak wait for operations that run late, such as weight gradients. In the "
        f"order that frees most memory, the peak is {bytes_text(least)}. Without the latency-hiding scheduler, XLA's "
        f"order {saved.effect}. The cost is communication that does not overlap with computation. Layers in a "
        "jax.lax.scan keep the overlap within each layer.",
        change=CODE.format(function=function_name(recording), option=OPTIONS[backend])
        + ORDERED * (backend is Backend.GPU),  # not compiled for TPU
        rows=sort_by_size(recording, rows),
        bytes=size,
        saving=saved,
        edits=(f"option:{OPTIONS[backend]}=False",),
        work=Work(exposed=True),
    )


def _waiting(program: ProgramGraph, order: I32) -> I64:
    """Return the rows that are live at the peak, but in the other order not live when the peak's operation runs."""
    graph = program.graph
    top = int(np.argmax(graph.live_bytes(graph.own_order)))
    step = int(np.flatnonzero(order == top)[0])
    own, other = graph.lifetimes(graph.own_order), graph.lifetimes(order)
    live = (own.first <= top) & (own.last >= top)
    waiting = np.append(live & ((other.last < step) | (other.first > step)), False)
    rows = program.recording.allocations
    return np.flatnonzero(waiting[program.buffer] & (rows.charge > 0) & (rows.start <= program.position[top]))
