"""Distributions of peaks, and the devices that are far from the median."""

from __future__ import annotations

import numpy as np
import pytest
from support.fleets import GIB, MIB, fleet_of_peaks

from tb_memplugin.analysis.fleet.answer import FleetAnswer
from tb_memplugin.analysis.fleet.peaks import peaks_by_memory
from tb_memplugin.questions.fleet.terminal import lines


def test_figures_of_a_pod_with_one_large_device() -> None:
    (peaks,) = peaks_by_memory(fleet_of_peaks([28 * GIB] * 99 + [30 * GIB]))
    assert (peaks.median_bytes, peaks.p95_bytes) == (28 * GIB, 28 * GIB)
    assert (peaks.smallest_bytes, peaks.largest_bytes) == (28 * GIB, 30 * GIB)
    assert peaks.spread == pytest.approx(2 / 28)
    assert [device.host for device in peaks.outliers] == [peaks.worst.host] == ["host-99"]
    assert peaks.distance(peaks.worst) == 2 * GIB


@pytest.mark.parametrize(
    ("noise", "seed"), [(0, 0), *((noise, seed) for noise in (1 * MIB, 100 * MIB, 2 * GIB) for seed in range(5))]
)
def test_a_healthy_pod_has_no_outlier(noise: int, seed: int) -> None:
    drawn = np.random.default_rng(seed).normal(28 * GIB, noise, 8192).astype(int).tolist()
    (peaks,) = peaks_by_memory(fleet_of_peaks(drawn))
    assert not peaks.outliers


def test_two_stages_of_a_pipeline_are_no_outliers() -> None:
    (peaks,) = peaks_by_memory(fleet_of_peaks([20 * GIB] * 40 + [28 * GIB] * 40))
    assert not peaks.outliers


def test_of_two_devices_neither_is_an_outlier_but_the_larger_one_is_explained() -> None:
    fleet = fleet_of_peaks([20 * GIB, 28 * GIB], sites=[[("a.py:1 f", 20 * GIB)], [("a.py:1 f", 28 * GIB)]])
    (memory,) = FleetAnswer(fleet).memories
    assert not memory.peaks.outliers
    assert [cause.text for cause in memory.causes(memory.peaks.worst)] == ["a.py:1 f"]


def test_a_device_that_differs_on_all_hosts_is_compared_with_its_own_name() -> None:
    """As GPU_1 of a real profile of eight GPUs. Otherwise each host would have an outlier, and none the real one."""
    peaks, devices = [], []
    for host in range(24):
        peaks += [5 * GIB, 3 * GIB + (2 * GIB if host == 7 else 0), 5 * GIB, 5 * GIB + host % 3 * MIB]
        devices += ["GPU_0", "GPU_1", "GPU_2", "GPU_3"]
    sites = [[("step.py:1 f", peak)] for peak in peaks]
    fleet = fleet_of_peaks(peaks, sites, hosts=[f"host-{n // 4}" for n in range(96)], devices=devices)
    (memory,) = FleetAnswer(fleet).memories
    assert memory.peaks.apart == {"GPU_1": 3 * GIB}
    (outlier,) = memory.peaks.outliers
    assert outlier.name == "host-7 GPU_1" and memory.peaks.distance(outlier) == 2 * GIB
    assert [cause.usual_bytes for cause in memory.causes(outlier)] == [3 * GIB]
    assert "apart     GPU_1 is 2.00 GiB below the median device on most hosts" in "\n".join(lines(fleet, ""))


def test_small_and_large_outliers_are_ordered_by_distance() -> None:
    (peaks,) = peaks_by_memory(fleet_of_peaks([28 * GIB] * 20 + [20 * GIB, 30 * GIB]))
    assert [device.host for device in peaks.outliers] == ["host-20", "host-21"]


def test_memories_are_compared_with_their_own_kind() -> None:
    found = peaks_by_memory(fleet_of_peaks([GIB] * 4 + [64 * GIB] * 4, memories=["HBM"] * 4 + ["gpu_host_bfc"] * 4))
    assert [(peaks.memory, peaks.median_bytes, list(peaks.outliers)) for peaks in found] == [
        ("HBM", GIB, []),
        ("gpu_host_bfc", 64 * GIB, []),
    ]
