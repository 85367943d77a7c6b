"""The bytes by which another order of the same operations would lower a program's peak."""

from __future__ import annotations

from dataclasses import replace

from tb_memplugin.analysis.advice.model import Saving
from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.analysis.replay.program_graph import program_graph
from tb_memplugin.analysis.replay.schedule_graph import lower_peak
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.model.recording import Recording


@memoize
def saved_by_other_order(recording: Recording) -> int:
    """Return by how many bytes a better order of the program's operations lowers its peak.

    A compiler schedules a changed program anew, and may find that order then.
    """
    found = program_graph(recording)
    if found is None:
        return 0
    graph = found.graph
    return graph.peak(graph.own_order) - graph.peak(lower_peak(graph, graph.own_order))


def or_another_order(recording: Recording, saved: Saving) -> Saving:
    """Return a saving that the compiler may enlarge by another order of the operations.

    An order that saves more than the change itself is advice of its own, and no effect of the change.
    """
    most = saved.at_most + min(saved_by_other_order(recording), saved.bytes)
    return replace(saved, at_most=min(most, peak(recording).bytes))
