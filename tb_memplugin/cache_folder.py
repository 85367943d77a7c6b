"""The caches in the user's cache folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tb_memplugin.sizes import parse_size


@dataclass(frozen=True)
class CacheSettings:
    """The folder and the size of a cache, which TB_MEMPLUGIN_<NAME>_CACHE and TB_MEMPLUGIN_<NAME>_CACHE_SIZE set."""

    name: str  # of its folder in the user's cache folder
    default_bytes: int

    @property
    def variables(self) -> tuple[str, str]:
        """Return the names of the environment variables of the folder and of the size."""
        folder = f"TB_MEMPLUGIN_{self.name.upper()}_CACHE"
        return folder, f"{folder}_SIZE"

    def folder(self, environment: Mapping[str, str] = os.environ) -> Path:
        """Return the folder of the cache: that of its variable, else in the user's cache folder."""
        if found := environment.get(self.variables[0]):
            return Path(found)
        home = Path.home()
        base: str | Path | None = environment.get("XDG_CACHE_HOME")
        if not base and sys.platform == "darwin":
            base = home / "Library" / "Caches"
        elif not base and os.name == "nt":
            base = environment.get("LOCALAPPDATA") or home / "AppData" / "Local"
        return Path(base or home / ".cache") / "tb_memplugin" / self.name

    def bytes(self, environment: Mapping[str, str] = os.environ) -> int:
        """Return the size that the cache may have."""
        found = environment.get(self.variables[1])
        return parse_size(found) if found else self.default_bytes
