"""Advice to return fewer scores of classes, such as logits over a vocabulary."""

from __future__ import annotations

import numpy as np

from tb_memplugin.analysis.advice.model import Advice, AdviceKind, saving, sort_by_size
from tb_memplugin.analysis.advice.support.class_scores import class_scores
from tb_memplugin.analysis.advice.support.passes import ProgramPasses
from tb_memplugin.analysis.dataflow.training_step import training_step
from tb_memplugin.analysis.replay.what_if import resize_rows
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.arrays import I64
from tb_memplugin.model.recording import Recording
from tb_memplugin.sizes import bytes_text

MIN_RESULT_SHARE = 10  # of the peak


def advise_class_scores(recording: Recording, passes: ProgramPasses, results: I64) -> Advice | None:
    """Advise on results of inference of which callers usually need few, such as logits over a vocabulary."""
    size, dtype = recording.allocations.size, recording.allocations.dtype
    if training_step(recording) is not None:
        return None
    rows, computed = class_scores(recording, passes, results)
    if not len(rows) or MIN_RESULT_SHARE * int(size[rows].sum()) < peak(recording).bytes:
        return None
    # On CPU, f32 results are computed in separate memory before they are cast.
    is_wide = bool(dtype.isin({"f32"})[rows].all()) and not _is_for_cpu(recording)
    gone = resize_rows(recording, computed, np.zeros(len(computed), dtype=np.int64))
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


def _is_for_cpu(recording: Recording) -> bool:
    return recording.program is not None and recording.program.for_cpu
