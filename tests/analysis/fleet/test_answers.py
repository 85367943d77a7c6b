"""Causes, leaks, programs and missing hosts of a fleet."""

from __future__ import annotations

import pytest
from support.fleets import GIB, fleet_of_peaks, fleet_of_programs

from tb_memplugin.analysis.fleet.answer import FleetAnswer
from tb_memplugin.analysis.fleet.host_names import host_ranges, missing_hosts
from tb_memplugin.model.fleet import FileSummary, Fleet, ProgramUse, Site
from tb_memplugin.questions.fleet.words import (
    cause_text,
    leak_text,
    other_program_text,
    program_difference_text,
    programs_text,
)

USUAL = [("train.py:1 step", 20 * GIB), ("model.py:2 mlp", 8 * GIB)]


def causes(*sites: tuple[str, int], usual: int = 9) -> list[str]:
    """Return the causes of a device with these sites among usual ones."""
    peaks = [28 * GIB] * usual + [sum(size for _, size in sites)]
    fleet = fleet_of_peaks(peaks, [USUAL] * usual + [list(sites)])
    (memory,) = FleetAnswer(fleet).memories
    (device,) = memory.peaks.outliers
    return [cause_text(cause, len(fleet.hosts)) for cause in memory.causes(device)]


def test_a_site_on_one_host_only() -> None:
    assert causes(*USUAL, ("checkpoint.py:88 device_put", 2 * GIB)) == [
        "checkpoint.py:88 device_put, 2.00 GiB, on this host only"
    ]


def test_a_site_that_is_larger_here() -> None:
    assert causes(USUAL[0], ("model.py:2 mlp", 12 * GIB)) == [
        "model.py:2 mlp, 4.00 GiB: 12.0 GiB here, 8.00 GiB on the median device"
    ]


def test_a_site_that_is_missing_below_the_median() -> None:
    assert causes(USUAL[0]) == ["model.py:2 mlp, \N{MINUS SIGN}8.00 GiB: 0 B here, 8.00 GiB on the median device"]


def test_a_site_on_some_hosts() -> None:
    outlier = [*USUAL, ("checkpoint.py:88 device_put", 2 * GIB)]
    fleet = fleet_of_peaks([28 * GIB] * 8 + [30 * GIB] * 2, [USUAL] * 8 + [outlier] * 2)
    (memory,) = FleetAnswer(fleet).memories
    assert {cause_text(memory.causes(device)[0], 10) for device in memory.peaks.outliers} == {
        "checkpoint.py:88 device_put, 2.00 GiB, on 2 of 10 hosts"
    }


def test_operations_of_replicas_are_the_same_site() -> None:
    sites = [[(f"replica_{n}/dense/MatMul", 8 * GIB), ("x", 20 * GIB)] for n in range(9)]
    fleet = fleet_of_peaks([28 * GIB] * 8 + [30 * GIB], [*sites[:8], [*sites[8], ("new", 2 * GIB)]])
    (memory,) = FleetAnswer(fleet).memories
    assert [cause.text for cause in memory.causes(memory.peaks.worst)] == ["new"]


def test_a_leak_on_one_host_only() -> None:
    fleet = fleet_of_peaks([GIB] * 4, growth=["", "", "metrics.py:41 record", ""])
    (leak,) = FleetAnswer(fleet).leaks
    assert leak_text(leak, fleet) == "host-2: metrics.py:41 record, 1.00 MiB per step on TPU core 0, on this host only"


def test_a_leak_on_all_hosts_is_one_line() -> None:
    fleet = fleet_of_peaks([GIB] * 4, growth=["metrics.py:41 record"] * 4)
    (leak,) = FleetAnswer(fleet).leaks
    assert leak_text(leak, fleet).startswith("metrics.py:41 record, up to 1.00 MiB per step on all 4 hosts")


def test_hosts_with_another_program() -> None:
    step, other, extra = ("jit_step", "a"), ("jit_step", "b"), ("jit_log", "c")
    answer = FleetAnswer(fleet_of_programs([step, extra], [step], [other], [step], [extra], []))
    assert [(each.host, each.use.fingerprint if each.use else None) for each in answer.other_programs] == [
        ("host-2", "b"),
        ("host-4", None),
    ]
    assert programs_text(answer) == "1 program (another on 2 hosts)"
    assert other_program_text(answer.other_programs[0]) == (
        "host-2 has another jit_step than most hosts: 6 B reserved, the same size"
    )
    assert programs_text(FleetAnswer(fleet_of_programs([step], [step], []))) == "1 program (identical on all)"
    assert programs_text(FleetAnswer(fleet_of_programs([], []))) == ""


def test_what_differs_in_another_program() -> None:
    usual, other = (
        ProgramUse("jit_step", "jit_step(1)", name, True, peak, peak + GIB, memory="HBM", sites=sites)
        for name, peak, sites in (
            ("a", 4 * GIB, (Site("a.py:1 f", 3 * GIB), Site("a.py:2 g", GIB))),
            ("b", 5 * GIB, (Site("a.py:1 f", 5 * GIB),)),
        )
    )
    files = [FileSummary(f"/{n}", 1, "1-1", f"w-{n}", "r", (), (other if n == 1 else usual,)) for n in range(4)]
    (found,) = FleetAnswer(Fleet("r", (), tuple(files))).other_programs
    assert (
        program_difference_text(found)
        == "6.00 GiB reserved, +1.00 GiB; a.py:1 f, +2.00 GiB; a.py:2 g, \N{MINUS SIGN}1.00 GiB"
    )
    assert (found.recording, found.usual.recording) == ("r|w-1|jit_step(1)|HBM", "r|w-0|jit_step(1)|HBM")


def test_missing_hosts_as_ranges() -> None:
    hosts = ["w-008", "w-009", "w-010", "w-012", "x", "y-1", "z-2"]
    assert host_ranges(hosts) == [("w-008", "w-010", 3), *((host, host, 1) for host in hosts[3:])]


@pytest.mark.parametrize(
    ("hosts", "missing"),
    [
        (["w-0", "w-1", "w-3", "w-12", *(f"w-{n}" for n in range(4, 12))], ["w-2"]),
        (["host-007", "host-008", "host-010"], ["host-009"]),
        (["a3-w-1", "a3-w-2", "a3-w-4"], ["a3-w-0", "a3-w-3"]),
        (["node1", "node2", "node4"], ["node3"]),  # these may begin at 1
        (["w-0", "w-1", "w-2"], []),
        (["w-0", "w-100", "w-200"], None),  # numbers that do not count hosts
        (["10.0.0.3", "10.0.0.4", "10.0.0.6"], None),
        (["34.83.195.179_6003", "34.83.195.179_6005", "34.83.195.179_6004"], None),
        (["a1-w-1", "a2-w-2", "a3-w-4"], None),  # 3 of 3 x 5
        (["tw003", "localhost", "x5"], None),
        (["localhost"], None),
        ([f"slice-{s}-w-{w}" for s in range(4) for w in range(16) if (s, w) != (3, 12)], ["slice-3-w-12"]),
        ([f"slice-{s}-w-{w}" for s in (1, 2) for w in (0, 1)], ["slice-0-w-0", "slice-0-w-1"]),
        ([f"slice-{s}-w-{w}" for s in (0, 2) for w in (0, 1)], ["slice-1-w-0", "slice-1-w-1"]),
        (["train-slice-0-0-x7k2v", "train-slice-0-1-bb4cd", "train-slice-0-3-q9zzw"], ["train-slice-0-2"]),
        (
            ["lm-workers-1-0", "lm-workers-1-1", "lm-workers-2-0"],
            ["lm-workers-0-0", "lm-workers-0-1", "lm-workers-2-1"],
        ),
        (["a-1-999999999", "a-2-3", "a-3-77"], None),
        ([], []),
    ],
)
def test_missing_hosts(hosts: list[str], missing: list[str] | None) -> None:
    assert missing_hosts(hosts) == missing
