"""Programs of many hosts, each of which is read once: hosts of one job have the same, byte for byte."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from hashlib import blake2b

from tb_memplugin import logdir, readers
from tb_memplugin.analysis.fleet.largest_sites import largest_sites
from tb_memplugin.analysis.usage.live_bytes import peak, reserved_bytes
from tb_memplugin.errors import NoBufferAssignmentError
from tb_memplugin.fleet.problems import problem_text
from tb_memplugin.logdir import HostFile
from tb_memplugin.model.fleet import DeviceSummary, FileSummary, ProgramSummary, ProgramUse
from tb_memplugin.readers.common.part import FilePart


def use_of(part: FilePart) -> ProgramUse:
    """Return a program by its content, which is not parsed."""
    fingerprint = blake2b(part.content or b"", digest_size=16).hexdigest()
    return ProgramUse(part.title.partition("(")[0], part.title, fingerprint)


def read_programs(file: HostFile, wanted: Collection[str]) -> list[ProgramSummary]:
    """Read the programs of a file with these fingerprints."""
    data, skipped = logdir.read_content(file)
    parts = readers.open_file(data, file.path, host=file.host, skipped=skipped)
    prints = [(part, use_of(part).fingerprint) for part in parts if part.kind.has_program]
    return [_summary(part, fingerprint) for part, fingerprint in prints if fingerprint in wanted]


def _summary(part: FilePart, fingerprint: str) -> ProgramSummary:
    try:
        main = next((recording for recording in part.read() if recording.is_main_memory), None)
        if main is None:
            return ProgramSummary(fingerprint)
        sites, other = largest_sites(main)
        sizes = peak(main).bytes, reserved_bytes(main), main.capacity or 0
        return ProgramSummary(fingerprint, main.memory, *sizes, sites, other)
    except NoBufferAssignmentError:  # of programs that run nothing on a device
        return ProgramSummary(fingerprint)
    except Exception as error:
        return ProgramSummary(fingerprint, problem=f"{part.title}: {problem_text(error)}")


def with_programs(summaries: Iterable[FileSummary], known: Mapping[str, ProgramSummary]) -> list[FileSummary]:
    """Return summaries with the sizes of their programs.

    A host without measured devices gets its largest program as a device.
    """
    found = [replace(summary, programs=tuple(_sized(use, known) for use in summary.programs)) for summary in summaries]
    measured = {(summary.run, summary.host) for summary in found if summary.devices}
    largest: dict[tuple[str, str], tuple[int, ProgramUse]] = {}  # by run and host: the file's number, and its program
    for number, summary in enumerate(found):
        place = summary.run, summary.host
        for use in summary.programs if place not in measured else ():
            if use.peak_bytes > (largest[place][1].peak_bytes if place in largest else -1):
                largest[place] = number, use
    for number, use in largest.values():
        found[number] = replace(found[number], devices=(_planned(use, known[use.fingerprint]),))
    return found


def _sized(use: ProgramUse, known: Mapping[str, ProgramSummary]) -> ProgramUse:
    program = known.get(use.fingerprint)
    if program is None:
        return use
    return replace(
        use,
        memory=program.memory,
        peak_bytes=program.peak_bytes,
        reserved_bytes=program.reserved_bytes,
        sites=program.sites,
        problem=program.problem,
    )


def _planned(use: ProgramUse, program: ProgramSummary) -> DeviceSummary:
    sizes = program.peak_bytes, program.capacity_bytes
    return DeviceSummary(
        program.memory, program.memory, False, *sizes, program.sites, program.other_bytes, title=use.title
    )
