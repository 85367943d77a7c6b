"""The user's cache folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of this package in the user's cache folder."""
    home = Path.home()
    base: str | Path | None = environment.get("XDG_CACHE_HOME")
    if not base and sys.platform == "darwin":
        base = home / "Library" / "Caches"
    elif not base and os.name == "nt":
        base = environment.get("LOCALAPPDATA") or home / "AppData" / "Local"
    return Path(base or home / ".cache") / "tb_memplugin"
