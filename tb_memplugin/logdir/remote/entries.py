"""Versions and times of remote files, which each store names differently."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

# Times that are larger than the year 5138 in seconds are in milliseconds.
MAX_SECONDS = 10**11
MAX_MILLISECONDS = MAX_SECONDS * 1000
VERSIONS = ("etag", "ETag", "mtime", "updated", "Last-Modified", "created")
TIMES = ("mtime", "updated", "LastModified", "last_modified", "modified", "modificationTime", "created")


def stamp(info: dict[str, Any]) -> str:
    """Return a text that changes with the file: its version, or its time, and its size."""
    # Azure quotes an ETag in answers about one file, and not in listings.
    version = next((str(info[key]).strip('"') for key in VERSIONS if info.get(key)), "")
    return f"{version}-{size(info)}"


def size(info: dict[str, Any]) -> int:
    """Return the bytes of a file; 0 where the store does not give them."""
    return int(info.get("size") or 0)


def modified_ns(info: dict[str, Any]) -> int:
    """Return the modification time that a store gives for a file, in nanoseconds since 1970; 0 where it is unknown.

    Each store has another name for it, and another type: seconds, milliseconds, a date, or its text.
    """
    for key in TIMES:
        value = info.get(key)
        try:
            if isinstance(value, str):
                value = datetime.fromisoformat(value)
            if isinstance(value, datetime):
                value = value.replace(tzinfo=value.tzinfo or UTC).timestamp()
            if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < MAX_MILLISECONDS:
                return int(value * (10**9 if value < MAX_SECONDS else 10**6))
        except (ValueError, OverflowError, OSError):
            continue
    return 0
