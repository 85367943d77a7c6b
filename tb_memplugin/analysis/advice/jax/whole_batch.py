"""Advice to split a batch that is whole on each device, although devices split the inputs.

XLA chooses how to split each value. Where a product has weights that are split along the axis of the batch, it may
gather the examples instead of the weights: from there on each device computes with all of them.
"""

from collections.abc import Iterator

import numpy as np

from tb_memplugin.analysis.advice.model import MIN_BYTES, Advice, AdviceKind, saving, sort_by_size
from tb_memplugin.analysis.advice.support.batch import Batch, batch_values, find_batch, used_inputs
from tb_memplugin.analysis.advice.support.passes import program_passes
from tb_memplugin.analysis.dataflow.graph import DataflowGraph, dataflow_graph
from tb_memplugin.analysis.dataflow.training_step import training_step
from tb_memplugin.analysis.ownership.model_paths import Pass
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.ownership.source_lines import frame_text, user_frames
from tb_memplugin.analysis.replay.what_if import resize_rows
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.analysis.usage.live_set import live_rows
from tb_memplugin.model.arrays import I64, dimensions
from tb_memplugin.model.kinds import Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import bytes_text, counted

# A fifth of the peak. Where weights are split by columns, or a table is split by rows, devices share the work and need
# all examples for it: such a step needs 146 MiB more with a constraint. In four programs, these values are 4 to 12 %.
MIN_WHOLE_SHARE = 5
CODE = """\
# at {line}, and wherever all examples are on each device again
x = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, PartitionSpec({spec})))"""


def advise(recording: Recording) -> Iterator[Advice]:
    """Yield one piece for all values of the forward and backward passes that have the whole batch."""
    passes, graph, step = program_passes(recording), dataflow_graph(recording), training_step(recording)
    if passes is None or graph is None or step is None or graph.program.devices < 2:
        return
    given = np.flatnonzero(passes.is_argument & (roles(recording) == Role.INPUT))
    rows, inputs = used_inputs(graph, step, given)
    batch = find_batch(recording, graph, step, rows)
    if batch is None or batch.devices < 2 or batch.dimension:
        return
    scaled = batch_values(recording, graph, step, passes, inputs, batch.size).scaled
    whole, size = _whole(recording, graph, scaled, batch), recording.allocations.size
    saved = saving(recording, resize_rows(recording, whole, size[whole] // batch.devices)) if len(whole) else None
    if saved is None or MIN_WHOLE_SHARE * saved.at_least < saved.before:
        return
    live = sort_by_size(recording, np.intersect1d(whole, live_rows(recording, peak(recording).position)))
    forward = whole[passes.within(Pass.FORWARD)[passes.made[whole]] & (size[whole] >= MIN_BYTES)]
    line = _line(recording, forward[np.argsort(passes.made[forward], kind="stable")])
    shape = recording.allocations.shape[live[0]].partition("{")[0]
    yield Advice(
        kind=AdviceKind.REPLICATION,
        title=f"Split the batch of {batch.whole:,} at {line}",
        sentence=f"{counted(len(live), 'tensor')} at the peak, {bytes_text(int(size[live].sum()))}, such as {shape}, "
        f"{'has' if len(live) == 1 else 'have'} all {batch.whole:,} examples on each device, though {batch.devices:,} "
        f"devices split the inputs. It begins at {line}. With a sharding constraint there, each device computes "
        f"with {batch.size:,} examples, which {saved.effect} per device.",
        change=CODE.format(line=line, spec=_axes(graph, batch)),
        rows=live,
        bytes=int(size[live].sum()),
        saving=saved,
    )


def _whole(recording: Recording, graph: DataflowGraph, rows: I64, batch: Batch) -> I64:
    """Return the rows whose first dimension is the whole batch, and whose last one is not split instead.

    A time as long may lie before a part of the batch, `[64,16,1024]`, so it takes a row without such a part, too.
    """
    shape, columns = recording.allocations.shape, _split_columns(recording, graph)
    of_code = [dimensions(text) for text in shape.strings]
    is_whole = np.array([sizes[:1] == [batch.whole] and sizes[-1] not in columns for sizes in of_code])
    certain = np.array([batch.size not in sizes for sizes in of_code]) & is_whole
    code = shape.codes[rows]
    return rows[is_whole[code] & (code >= 0)] if certain[code[code >= 0]].any() else rows[:0]


def _split_columns(recording: Recording, graph: DataflowGraph) -> set[int]:
    """Return the extents that devices have of split dimensions of weights: a product's result has some of them."""
    shardings, found, shape = graph.program.shardings, set[int](), recording.allocations.shape
    if shardings is None:
        return found
    for row in np.flatnonzero(graph.is_argument & (roles(recording) == Role.PARAMETER)).tolist():
        leaf = int(graph.values.argument[graph.value[row]])
        found.update(n for d, n in enumerate(dimensions(shape[row])) if shardings.parts_of(leaf, d) > 1)
    return found


def _line(recording: Recording, rows: I64) -> str:
    """Return the first row's line of the user's code."""
    frames, stack = user_frames(recording), recording.allocations.stack
    found = (int(frames[stack[row]]) for row in rows.tolist() if stack[row] >= 0)
    frame = next((frame for frame in found if frame >= 0), -1)
    return frame_text(recording.stacks, frame) if frame >= 0 else "the first of them"


def _axes(graph: DataflowGraph, batch: Batch) -> str:
    """Return code for the axes that split the batch; a variable where the file has no names of axes."""
    shardings = graph.program.shardings
    leaf = int(graph.values.argument[graph.value[batch.rows[0]]])
    code = int(shardings.code[leaf]) if shardings is not None and 0 <= leaf < len(shardings.code) else -1
    if shardings is None or code < 0:
        return "axis"
    axes = tuple(axis.name for axis in shardings.named[code].dimensions[batch.dimension])
    return repr(axes if len(axes) > 1 else axes[0])
