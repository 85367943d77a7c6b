"""The summary of one file: its devices with their peaks, and its programs.

Hosts of one job have the same programs, byte for byte, so each program is read once for all hosts.
"""

from __future__ import annotations

import re
import threading
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b

import numpy as np

from tb_memplugin import logdir, readers
from tb_memplugin.analysis.fleet.peaks import largest_sites, site_name
from tb_memplugin.analysis.leaks.classify import floor_growth
from tb_memplugin.analysis.leaks.over_steps import leaking_sites
from tb_memplugin.analysis.linking import count_runs, fullest_program, run_count, temporary_bytes
from tb_memplugin.analysis.usage.live_bytes import peak, reserved_bytes
from tb_memplugin.analysis.usage.live_set import UNEXPLAINED
from tb_memplugin.errors import NoBufferAssignmentError
from tb_memplugin.fleet.tasks import may_pass, problem_text
from tb_memplugin.logdir import HostFile
from tb_memplugin.model.fleet import DeviceSummary, FileSummary, ProgramSummary, ProgramUse, Site
from tb_memplugin.model.kinds import DEVICE_MEMORY
from tb_memplugin.model.recording import Recording
from tb_memplugin.readers.common.part import FilePart


def parts_of(file: HostFile) -> list[FilePart]:
    """Read a file, and return its parts."""
    data, skipped = logdir.read_content(file)
    return readers.open_file(data, file.path, host=file.host, skipped=skipped)


def use_of(part: FilePart) -> ProgramUse:
    """Identify a program by a hash of its content, without parsing it."""
    fingerprint = blake2b(part.content or b"", digest_size=16).hexdigest()
    return ProgramUse(part.title.partition("(")[0], part.title, fingerprint)


def read_programs(file: HostFile, wanted: Collection[str]) -> list[ProgramSummary]:
    """Read the programs of a file with these fingerprints."""
    prints = [(part, use_of(part).fingerprint) for part in parts_of(file) if part.kind.has_program]
    return [_summary(part, fingerprint) for part, fingerprint in prints if fingerprint in wanted]


def _summary(part: FilePart, fingerprint: str) -> ProgramSummary:
    try:
        main = next((recording for recording in part.read() if recording.is_main_memory), None)
        if main is None:
            return ProgramSummary(fingerprint)
        sites, other = largest_sites(main)
        sizes = peak(main).bytes, reserved_bytes(main), main.capacity or 0
        temporary = temporary_bytes(main)
        return ProgramSummary(fingerprint, main.memory, *sizes, sites, other, temporary_bytes=temporary)
    except NoBufferAssignmentError:  # the program runs nothing on a device
        return ProgramSummary(fingerprint)
    except Exception as error:
        return ProgramSummary(fingerprint, problem=f"{part.title}: {problem_text(error)}")


def with_programs(summaries: Iterable[FileSummary], known: Mapping[str, ProgramSummary]) -> list[FileSummary]:
    """Return summaries with the sizes of their programs, and with the programs that hold the stacks of devices.

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
    return _with_stacks(found, known)


STACK = "stack: temporaries of"


def _with_stacks(summaries: Sequence[FileSummary], known: Mapping[str, ProgramSummary]) -> list[FileSummary]:
    """Name the program whose temporaries a device's stack holds at its peak, of those that ran on the host."""
    ran: dict[tuple[str, str], list[ProgramUse]] = defaultdict(list)
    for summary in summaries:
        ran[summary.run, summary.host] += [use for use in summary.programs if use.ran and use.fingerprint in known]
    found = []
    for summary in summaries:
        uses = ran[summary.run, summary.host]
        if uses and any(device.stack_bytes for device in summary.devices):
            temporary = np.array([known[use.fingerprint].temporary_bytes for use in uses], dtype=np.int64)
            stacks = np.array([device.stack_bytes for device in summary.devices], dtype=np.int64)
            best = fullest_program(stacks, temporary).tolist()
            named = [uses[index].module if index >= 0 else "" for index in best]
            summary = replace(summary, devices=tuple(map(_with_stack, summary.devices, named)))
        found.append(summary)
    return found


def _with_stack(device: DeviceSummary, module: str) -> DeviceSummary:
    """Return a device whose stack, a part of what no allocation explains, is a site that names its program."""
    sizes = {site.text: site.bytes for site in device.sites}
    stack = min(device.stack_bytes, sizes.get(UNEXPLAINED, 0))
    if not module or not stack:
        return device
    sizes[UNEXPLAINED] -= stack
    sizes[f"{STACK} {module}"] = stack
    sites = sorted((Site(text, size) for text, size in sizes.items() if size), key=lambda site: -site.bytes)
    return replace(device, sites=tuple(sites))


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


BETWEEN_STEPS = "memory in use between steps"  # the site of a device whose samples contain no lines
NUMBER = re.compile(r"\d+")
# Memories of devices, by the names that allocators, JAX's device profiles and PyTorch have for them.
DEVICE = re.compile(r"GPU_\d+_\w+|TPU core \d+|(?:TPU_|(?:cuda|gpu|hip|rocm|tpu|xpu):)\d+(?: live arrays)?")


# Reading a file of a store takes about 10 requests of 50 ms, one after the other. S3's client makes 10 at a time.
AT_ONCE = 8
_parsing = threading.Lock()  # several files are fetched at a time, but only one takes memory for its tables


def summarize_files(files: Sequence[tuple[HostFile, str]]) -> list[FileSummary]:
    """Summarize files of runs. Several are read at a time."""
    if len(files) == 1:
        return [summarize(*files[0])]
    with ThreadPoolExecutor(min(AT_ONCE, len(files))) as pool:
        return list(pool.map(summarize, *zip(*files, strict=True)))


def summarize(file: HostFile, run: str) -> FileSummary:
    """Summarize one file. The summary states a problem for each part that cannot be read."""
    found = FileSummary(file.path, file.size, file.stamp, file.host, run, problem=file.unreadable)
    if file.unreadable:
        return found
    try:
        data, skipped = logdir.read_content(file)
    except Exception as error:
        return failed(file, run, error)
    with _parsing:
        return _summarized(found, data, skipped)


def _summarized(found: FileSummary, data: bytes | memoryview, skipped: int) -> FileSummary:
    try:
        parts = readers.open_file(data, found.path, run=found.run, host=found.host, skipped=skipped)
        found = replace(found, programs=tuple(use_of(part) for part in parts if part.kind.has_program))
    except Exception as error:
        return _with_problem(found, "", error)
    for part in parts:
        if not part.kind.has_program:
            found = _with_devices(replace(found, kind=str(part.kind)), part, part.title if len(parts) > 1 else "")
    return found


def _with_devices(summary: FileSummary, part: FilePart, title: str) -> FileSummary:
    """Add the devices of a part, and which programs ran there."""
    try:
        recordings = [recording for recording in part.read() if recording.length and recording.is_main_memory]
    except Exception as error:
        return _with_problem(summary, title, error)
    if (runs := count_runs(recordings)) is not None:
        uses = tuple(replace(use, ran=run_count(use.title, runs) != 0) for use in summary.programs)
        summary = replace(summary, programs=uses)
    for recording in recordings:
        summary = _with_moment(summary, recording)
        if recording.kind.is_failure:
            summary = replace(summary, problem=f"out of memory: {recording.title}")
            continue
        try:
            summary = replace(summary, devices=(*summary.devices, summarize_device(recording)))
        except Exception as error:
            summary = _with_problem(summary, recording.memory, error)
            with suppress(Exception):  # the sizes may be damaged too
                summary = replace(summary, devices=(*summary.devices, _without_sites(recording)))
    return summary


def outline(file: HostFile, run: str, recordings: Iterable[Recording]) -> FileSummary:
    """Summarize the recordings of a file without their sites and leaks, and without its programs."""
    found = FileSummary(file.path, file.size, file.stamp, file.host, run)
    for recording in recordings:
        is_device = not recording.kind.has_program and recording.is_main_memory
        if recording.length and is_device and not recording.kind.is_failure:
            devices = *found.devices, _without_sites(recording)
            found = replace(_with_moment(found, recording), kind=str(recording.kind), devices=devices)
    return found


def _with_moment(summary: FileSummary, recording: Recording) -> FileSummary:
    """Add the step and the time of a recording's end."""
    info = recording.capture_info
    if info is None:
        return summary
    end = int(recording.clock[-1]) if recording.clock is not None and len(recording.clock) else 0
    time_ns = info.time_ns + end if info.time_ns else 0
    step = -1 if info.step is None else info.step
    return replace(summary, step=max(summary.step, step), time_ns=max(summary.time_ns, time_ns))


def summarize_device(recording: Recording) -> DeviceSummary:
    """Summarize a recording of a device's memory."""
    # Samples contain no lines; those of a snapshot may be joined to them.
    sites, other = ((), peak(recording).bytes) if recording.kind.is_sampled else largest_sites(recording)
    growth, size, unit = fastest_leak(recording)
    reserved = recording.reported.reserved if recording.reported is not None else ()
    stack = int(reserved[peak(recording).position]) if len(reserved) else 0
    found = replace(_without_sites(recording), sites=sites, other_bytes=other, stack_bytes=stack)
    return replace(found, growth=growth, growth_bytes=size, growth_unit=unit)


def _without_sites(recording: Recording) -> DeviceSummary:
    """Summarize the sizes alone, which may be readable where call stacks are damaged."""
    memory = DEVICE_MEMORY if DEVICE.fullmatch(recording.memory) else NUMBER.sub("*", recording.memory)
    top = peak(recording).bytes
    return DeviceSummary(recording.memory, memory, True, top, recording.capacity or 0, (), top, recording.title)


def fastest_leak(recording: Recording) -> tuple[str, int, str]:
    """Return the site that leaks fastest, its bytes per step, and what a step is; empty texts without a leak."""
    if recording.kind.is_sampled:
        floor = floor_growth(recording)
        if floor is None or not floor.grows:
            return "", 0, ""
        return BETWEEN_STEPS, round(floor.bytes_per_unit), floor.unit
    found = leaking_sites(recording)
    if found.sites is None or not len(found.sites.row):
        return "", 0, ""
    site = site_name(recording, int(found.sites.row[0]))
    return site, round(float(found.sites.bytes_per_step[0])), found.steps.unit


def failed(file: HostFile, run: str, error: object) -> FileSummary:
    """Return the summary of a file that could not be read."""
    return _with_problem(FileSummary(file.path, file.size, file.stamp, file.host, run), "", error)


def _with_problem(summary: FileSummary, part: str, error: object) -> FileSummary:
    text = f"{part}: {problem_text(error)}" if part else problem_text(error)
    both = f"{summary.problem}; {text}" if summary.problem else text
    return replace(summary, problem=both, may_pass=summary.may_pass or may_pass(error))
