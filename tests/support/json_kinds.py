"""The shape of a JSON value: its paths and the types at each path."""

from __future__ import annotations

from typing import Any


def kinds(value: Any, path: str = "") -> dict[str, set[str]]:
    """Return each path of a JSON value with the types found there; keys that are ids become `*`."""
    found: dict[str, set[str]] = {}
    if isinstance(value, dict):
        below = [("*" if key.lstrip("-").isdigit() else key, child) for key, child in value.items()]
    else:
        below = [("[]", child) for child in value] if isinstance(value, list) else []
        name = "number" if isinstance(value, int | float) else type(value).__name__
        found[path] = {name}
    for key, child in below:
        for inner, types in kinds(child, f"{path}.{key}").items():
            found.setdefault(inner, set()).update(types)
    return found
