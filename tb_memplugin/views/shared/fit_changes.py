"""Changes that a fit made to a program, in words."""

from __future__ import annotations


def change_text(change: str) -> str:
    """Describe a change, as a record has it: `donate:state` as `donate state`. Unknown ones stay as they are."""
    kind, _, rest = change.partition(":")
    if change == "drop-unused":
        return "drop unused arguments"
    if kind == "donate" and rest:
        return f"donate {rest}"
    if kind == "shard" and rest.partition(":")[2]:
        axis, _, arguments = rest.partition(":")
        return f"shard {arguments} over {axis}"
    return rest if kind in ("option", "set") and rest else change
