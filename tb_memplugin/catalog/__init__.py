"""Recordings of logdirs, files and pasted texts.

- catalog: the recordings of a logdir, cached for servers
- listing: the recordings of a file or path, with the problems of damaged files
- fit_records: the candidates of fits in a logdir
- pasted_texts: out-of-memory errors that users paste
"""

from __future__ import annotations

from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.catalog.fit_records import FitRecords, records_of_path
from tb_memplugin.catalog.listing import Listing, Problem, listing_of_path, listing_of_stream

__all__ = ["Catalog", "FitRecords", "Listing", "Problem", "listing_of_path", "listing_of_stream", "records_of_path"]
