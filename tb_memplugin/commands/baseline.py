"""The command `baseline`."""

from __future__ import annotations

import argparse
import os

from tb_memplugin.commands.support.output import (
    asked,
    atomic_file,
    check_output,
    listing_and_pattern,
    no_match,
    print_problems,
)
from tb_memplugin.commands.support.terminal import MIN_BYTES, bounded, print_answer, show
from tb_memplugin.errors import InputError
from tb_memplugin.questions.asking.files import BaselineFileJson
from tb_memplugin.questions.asking.json_types import problems_json
from tb_memplugin.questions.asking.selectors import no_recordings
from tb_memplugin.questions.compare.baseline import (
    baseline_answer,
    baseline_check,
    baseline_facts,
    check_baseline_answer,
)
from tb_memplugin.questions.compare.baseline_file import (
    TOLERANCE,
    Baseline,
    parse_tolerance,
    read_baseline,
    text_of,
    write_command,
)
from tb_memplugin.questions.compare.baseline_text import lines, markdown
from tb_memplugin.sizes import bytes_text, counted


def run(arguments: argparse.Namespace) -> int:
    replaced = _replaced(arguments.write)
    if arguments.write is not None:
        check_output(arguments.write, arguments.path, replaced is not None)
    tolerance = arguments.tolerance or (replaced.tolerance.text if replaced is not None else TOLERANCE)
    parse_tolerance(tolerance)
    listing, pattern = listing_and_pattern(arguments)
    if not listing.recordings:
        raise no_recordings(arguments.path, listing.problems)
    found, failed = baseline_facts([r for r in listing.recordings if pattern.search(r.id)])
    print_problems(failed)
    if not found:
        raise no_match("No recordings for a baseline", arguments)
    text = text_of([one.facts for one in found], tolerance)
    file: BaselineFileJson | None = None
    if arguments.write is not None:
        with atomic_file(arguments.write) as stream:
            stream.write(text.encode())
        file = {"path": arguments.write, "bytes": os.path.getsize(arguments.write)}
    problems = [*problems_json(listing.problems), *failed]
    if arguments.json:
        print_answer(baseline_answer(file, tolerance, found, problems, asked(arguments, arguments.path)))
    elif file is None:
        show(*text.rstrip("\n").split("\n"))
    else:
        show(f"{file['path']}: {bytes_text(file['bytes'])}, {counted(len(found), 'recording')}")
    return 2 if problems else 0


def _replaced(file: str | None) -> Baseline | None:
    """Return the baseline that is to be replaced, if there is one. InputError for any other file."""
    if file is None or not os.path.isfile(file):
        return None
    try:
        return read_baseline(file)
    except InputError as error:
        raise InputError("The output file is no baseline", file, "choose another name") from error


def check(arguments: argparse.Namespace) -> int:
    """Check recordings against a baseline: 0 within the tolerance, 1 above it, 2 where some cannot be checked."""
    given = parse_tolerance(arguments.tolerance) if arguments.tolerance else None
    if arguments.max_bytes is not None and (arguments.json or arguments.max_bytes < MIN_BYTES):
        remedy = f"give {MIN_BYTES} or more, for text or --markdown"
        raise InputError("Not a limit of the text", f"--max-bytes {arguments.max_bytes}", remedy)
    before = read_baseline(arguments.baseline)
    listing, pattern = listing_and_pattern(arguments)
    chosen = [r for r in listing.recordings if pattern.search(r.id)]
    tolerance = given or before.tolerance
    found = baseline_check(arguments.baseline, before.recordings, chosen, tolerance, arguments.with_roles)
    print_problems(found.problems)
    found = found._replace(problems=[*problems_json(listing.problems), *found.problems])
    if not found.checked:
        raise InputError(
            "No recording is in the baseline",
            arguments.recording or arguments.path,
            f"write the baseline again with `{write_command(arguments.baseline)}`",
        )
    if arguments.json:
        print_answer(check_baseline_answer(found, asked(arguments, arguments.path)))
    else:
        shown = list((markdown if arguments.markdown else lines)(found))
        show(*(shown if arguments.max_bytes is None else bounded(shown, arguments.max_bytes)))
    if any(checked.status == "above" for checked in found.checked):
        return 1
    # What cannot be read or is missing may be above the baseline.
    return 2 if found.problems or found.missing else 0
