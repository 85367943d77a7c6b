"""The command `export`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import BinaryIO

from tb_memplugin.catalog.fit_records import records_of_path
from tb_memplugin.commands.options.recordings import EXPORTED
from tb_memplugin.commands.support.output import (
    check_format,
    check_output,
    listing_of,
    no_match,
    output_file,
    print_problems,
    print_written,
)
from tb_memplugin.errors import InputError
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.json_types import problems_json
from tb_memplugin.questions.asking.selectors import no_recordings
from tb_memplugin.questions.asking.source import FitOutcomes
from tb_memplugin.questions.export.formats import exportable, write_csv, write_json, write_parquet
from tb_memplugin.regex import recording_regex
from tb_memplugin.sizes import counted

WRITERS = {".parquet": write_parquet, ".csv": write_csv, ".json": write_json}


def run(arguments: argparse.Namespace) -> int:
    file, rows = arguments.to, None
    check_format(file, EXPORTED)
    suffixes = [suffix for suffix in WRITERS if file.removesuffix(".gz").endswith(suffix)]
    write = WRITERS[suffixes[0]] if suffixes else None  # None: a report
    pattern = recording_regex(arguments.recording or "", "--recording")
    check_output(file, arguments.path, arguments.force)
    with output_file(file) as stream:
        listing = listing_of(arguments.path)
        if not listing.recordings:
            raise no_recordings(arguments.path, listing.problems)
        selected = [r for r in listing.recordings if pattern.search(r.id)]
        if not selected:
            raise no_match("No recordings to export", arguments)
        selected, failed = exportable(selected)
        print_problems(problems_json(failed))
        if not selected:
            raise InputError("No recording can be exported", failed[0].file, failed[0].text)
        if write is None:
            content, written = _write_report(selected, listing.recordings, arguments, stream)
            selected = selected[:written]  # in order, until the report is full
        else:
            write(selected, stream)
            rows = sum(len(recording.allocations) for recording in selected)
            content = f"{counted(rows, 'row')} of {counted(len(selected), 'recording')}"
    print_written(arguments, rows, [recording.id for recording in selected], content, problems_json(failed))
    return 2 if failed else 0


def _write_report(
    selected: Sequence[Recording], every: Sequence[Recording], arguments: argparse.Namespace, stream: BinaryIO
) -> tuple[str, int]:
    """Write a report. Return its content in words, and the number of recordings in it.

    Recordings selected by name have no size limit.
    """
    from tb_memplugin.hosts import report

    name = os.path.basename(os.path.normpath(arguments.path))
    fits = records_of_path(arguments.path)
    candidates = FitOutcomes(fits.outcomes, fits.problems)
    max_bytes = sys.maxsize if arguments.recording else report.MAX_BYTES
    found = report.Report(f"Memory report of {name}", selected, every, max_bytes, candidates)
    stream.writelines(found.pieces())
    written = len(found.contained)
    if written == len(selected):
        return counted(written, "recording"), written
    count = counted(len(selected), "recording")
    return f"the {written:,} largest of {count}, to limit its size; --recording selects others", written
