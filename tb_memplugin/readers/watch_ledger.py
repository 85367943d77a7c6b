"""Ledgers of the memories of a watched job, and the peaks of its phases, from the named columns of its samples."""

from collections.abc import Mapping

import numpy as np

from tb_memplugin.model.arrays import I64
from tb_memplugin.model.kinds import HostPart
from tb_memplugin.model.tables import FREE, MemoryLedger, PhasePeaks
from tb_memplugin.readers.watch_layout import PHASE, PROCESS, MemoryPart

ColumnsByName = Mapping[str, I64]  # by name; UNKNOWN, which is negative, where a sample has no figure


def device_ledger(named: ColumnsByName, in_use: I64, limit: I64) -> MemoryLedger | None:
    """Return the ledger of a device; None where only the bytes in use are known."""
    nothing = np.full_like(in_use, -1)
    used, own, pool = (named.get(part, nothing) for part in (MemoryPart.USED, MemoryPart.OWN, MemoryPart.POOL))
    pool = np.maximum(pool, in_use)
    total = np.where((size := named.get(MemoryPart.TOTAL, nothing)) > 0, size, limit)
    outside = np.where(own >= 0, np.maximum(own - pool, 0), 0)
    others = {name.removeprefix(PROCESS): column for name, column in named.items() if name.startswith(PROCESS)}
    listed = np.maximum(pool + outside + sum(np.maximum(column, 0) for column in others.values()), 0)
    rest = "Driver and other processes" if (own >= 0).any() else "Outside of the allocator, driver and other processes"
    parts = {
        "Live": in_use,
        "Cache": pool - in_use,
        "Outside of the allocator": outside,
        **others,
        rest: np.where(used >= 0, used - listed, 0),
    }
    return _ledger(parts, np.where(total > 0, total - np.maximum(listed, used), -1))


def host_ledger(named: ColumnsByName, limit: I64) -> MemoryLedger | None:
    """Return the ledger of the host; None where its parts are unknown."""
    parts = {part.value: np.maximum(named[part.name.lower()], 0) for part in HostPart if part.name.lower() in named}
    if len(parts) < len(HostPart) or MemoryPart.USED not in named:
        return None
    own, used = sum(parts.values(), np.zeros_like(limit)), named[MemoryPart.USED]
    of_host = MemoryPart.TOTAL in named and bool((named[MemoryPart.TOTAL] == limit).all())
    parts["Rest of the host" if of_host else "Rest of the cgroup"] = used - own
    return _ledger(parts, np.where(limit > 0, limit - np.maximum(own, used), -1))


def _ledger(parts: ColumnsByName, free: I64) -> MemoryLedger | None:
    """Return the parts that are ever more than 0, with the free bytes where they are known."""
    kept = {label: np.maximum(column, 0) for label, column in parts.items() if (column > 0).any()}
    if (free >= 0).any():
        kept[FREE] = np.maximum(free, 0)
    return MemoryLedger(tuple(kept), np.stack(list(kept.values()))) if len(kept) > 1 else None


def phase_peaks(named: ColumnsByName) -> PhasePeaks | None:
    """Return the peaks of the phases that were sampled; None without any."""
    found = {name.removeprefix(PHASE): column for name, column in named.items() if name.startswith(PHASE)}
    found = {name: column for name, column in found.items() if (column >= 0).any()}
    if not found:
        return None
    levels = np.stack(list(found.values()))
    return PhasePeaks(tuple(found), levels.max(axis=1), levels.argmax(axis=1))
