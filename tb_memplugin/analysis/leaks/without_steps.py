"""Growth through a recording that marks no steps, over equal parts of its events.

A part may end anywhere in an iteration, so only one kind of growth is clear: many equal allocations of one site, made
in nearly every part, that stay to the end while other memory is allocated and freed. A cache that fills once, a model
that is built, the optimizer's state of the first step and the activations of one pass are none of these.
"""

import numpy as np

from tb_memplugin.analysis.leaks.classify import Verdict
from tb_memplugin.analysis.usage.live_set import group_by_site
from tb_memplugin.analysis.usage.steps import Steps
from tb_memplugin.model.arrays import I64, U8, Mask
from tb_memplugin.model.kinds import Axis
from tb_memplugin.model.recording import Recording

PARTS = 32
MIN_PART = 16  # events
PART_UNIT = 1000  # events: growth is stated per so many
EVENTS = f"{PART_UNIT:,} events"
MIN_STAYING = 128  # allocations; more than a pass of the deepest models keeps of one site, a layer at a time
MIN_SHARE_OF_PARTS = 0.75  # in which the site grows


def equal_parts(recording: Recording, why: Steps) -> Steps | None:
    """Return the ends of equal parts of the events in place of steps; None for few events. `why` there are no steps."""
    length = recording.length // PARTS
    if recording.axis is not Axis.TIME or recording.kind.is_sampled or length < MIN_PART:
        return None
    position = (np.arange(PARTS, dtype=np.int64) + 1) * length - 1
    message = f"{why.message} Growth by many equal allocations, all through the recording, is measured instead."
    return Steps(position, EVENTS, False, message)


def grows_throughout(recording: Recording, parts: Steps, row: I64, verdict: U8) -> Mask:
    """Mark the sites, each given by a row of it, that grow in nearly all parts by many equal allocations."""
    rows = recording.allocations
    born = np.flatnonzero((rows.start >= 0) & (rows.charge > 0))
    site, count = group_by_site(rows, born)
    stays = rows.end[born] >= recording.length
    part = np.minimum(np.searchsorted(parts.position, rows.start[born]), PARTS - 1)
    busy = np.bincount(np.searchsorted(parts.position, rows.end[born][~stays]), minlength=PARTS + 1)[:PARTS] > 0
    of_site = site[np.searchsorted(born, row)]
    staying = np.bincount(site, stays, count)[of_site]
    grown = np.unique(site[stays] * PARTS + part[stays])
    in_parts = np.bincount(grown // PARTS, minlength=count)[of_site]
    clear = (staying >= MIN_STAYING) & (in_parts >= MIN_SHARE_OF_PARTS * PARTS)
    if busy.sum() < MIN_SHARE_OF_PARTS * PARTS:
        return np.zeros(len(row), dtype=bool)
    return np.asarray((verdict == Verdict.LEAK) & clear)
