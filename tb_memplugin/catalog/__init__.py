"""Recordings of logdirs, files and pasted texts.

- catalog: the recordings of a logdir, cached for servers
- listing: the recordings of a file or path, with the problems of damaged files
- fit_records: the candidates of fits in a logdir
- pasted_texts: out-of-memory errors that users paste

Each name is imported when it is first used: a command that lists a file needs neither the cache nor the pasted texts.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tb_memplugin.catalog.catalog import Catalog
    from tb_memplugin.catalog.fit_records import FitRecords, records_of_path
    from tb_memplugin.catalog.listing import Listing, Problem, listing_of_path, listing_of_stream

__all__ = ["Catalog", "FitRecords", "Listing", "Problem", "listing_of_path", "listing_of_stream", "records_of_path"]

_MODULES = {"Catalog": "catalog", "FitRecords": "fit_records", "records_of_path": "fit_records"}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES.get(name, 'listing')}"), name)
