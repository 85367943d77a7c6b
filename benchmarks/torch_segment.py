"""A segment of a PyTorch memory snapshot, as torch.cuda.memory._dump_snapshot writes it."""

from __future__ import annotations

from typing import Any


def segment(address: int, size: int, state: str) -> dict[str, Any]:
    """Return a segment with one block in a state: `active_allocated`, `active_pending_free` or `inactive`."""
    block = {"address": address, "size": size, "requested_size": size, "state": state, "frames": []}
    return {
        "device": 0,
        "address": address,
        "total_size": size,
        "allocated_size": size if state == "active_allocated" else 0,
        "active_size": 0 if state == "inactive" else size,
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": [],
        "blocks": [block],
    }
