"""Fleets by hand."""

from __future__ import annotations

from collections.abc import Sequence

from tb_memplugin.model.fleet import DeviceSummary, FileSummary, Fleet, ProgramUse, Session, Site

MIB, GIB = 2**20, 2**30


def fleet_of_peaks(
    peaks: Sequence[int],
    sites: Sequence[Sequence[tuple[str, int]]] | None = None,
    memories: Sequence[str] | None = None,
    growth: Sequence[str] | None = None,
    hosts: Sequence[str] | None = None,
    devices: Sequence[str] | None = None,
) -> Fleet:
    """Return a fleet with one device for each peak. Each device has its own file, and without `hosts` its own host."""
    files = [
        FileSummary(
            f"/log/{n}.xplane.pb",
            1,
            "1-1",
            hosts[n] if hosts else f"host-{n}",
            "run",
            (
                DeviceSummary(
                    devices[n] if devices else "TPU core 0",
                    memories[n] if memories else "HBM",
                    True,
                    peak,
                    32 * GIB,
                    tuple(Site(*site) for site in sites[n]) if sites else (),
                    0,
                    "allocator",
                    growth[n] if growth else "",
                    MIB if growth and growth[n] else 0,
                    "step" if growth and growth[n] else "",
                ),
            ),
        )
        for n, peak in enumerate(peaks)
    ]
    return Fleet("run", (Session("run", None, len(files)),), tuple(files))


def fleet_of_programs(*programs: Sequence[tuple[str, str]]) -> Fleet:
    """Return a fleet of hosts with these programs: module and fingerprint."""
    files = [
        FileSummary(
            f"/log/{n}",
            1,
            "1-1",
            f"host-{n}",
            "run",
            (),
            tuple(ProgramUse(use[0], use[0], use[1], peak_bytes=5, reserved_bytes=6) for use in uses),
        )
        for n, uses in enumerate(programs)
    ]
    return Fleet("run", (Session("run", None, len(files)),), tuple(files))
