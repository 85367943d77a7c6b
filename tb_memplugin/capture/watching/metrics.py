"""Metrics of the watched devices for Prometheus, on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from tb_memplugin.capture.watching.counters import Reading
from tb_memplugin.readers.watch_layout import CounterSource, DeviceColumn, fragmentation, free_bytes

LOOPBACK = "127.0.0.1"
METRICS = {
    DeviceColumn.IN_USE: ("in_use_bytes", "Memory in use on the device."),
    DeviceColumn.PEAK: ("peak_bytes", "The most memory in use since the process started."),
    DeviceColumn.LIMIT: ("limit_bytes", "Memory that the device's allocator may use."),
    DeviceColumn.LARGEST_FREE: ("largest_free_block_bytes", "The largest free block."),
    DeviceColumn.RESERVED: ("reserved_bytes", "JAX: not available to the heap. PyTorch: requested from the device."),
}


class PrometheusMetrics:
    """A server for the latest sample. OSError where the port is in use."""

    def __init__(self, port: int) -> None:
        """`port`: 0 for any free one."""
        self._latest = _Latest()
        registry = CollectorRegistry()
        registry.register(self._latest)
        self._server, _ = start_http_server(port, LOOPBACK, registry)

    @property
    def port(self) -> int:
        return int(self._server.server_port)

    def show(self, readings: list[Reading], step: int) -> None:
        self._latest.sample = readings, step

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Latest(Collector):
    """The latest sample. It is replaced as a whole, so a request in another thread sees one sample only."""

    def __init__(self) -> None:
        self.sample: tuple[list[Reading], int] = [], -1

    def collect(self) -> Iterator[GaugeMetricFamily]:
        readings, step = self.sample
        for column, (name, text) in METRICS.items():
            gauge = GaugeMetricFamily(f"tb_memplugin_memory_{name}", text, labels=["device"])
            for reading in readings:
                if reading.counters[column] >= 0:
                    gauge.add_metric([reading.device.name], reading.counters[column])
            yield gauge
        gauge = GaugeMetricFamily(
            "tb_memplugin_memory_fragmentation_ratio", "Free memory outside the largest free block.", labels=["device"]
        )
        for reading in readings:
            if (share := _fragmentation(reading)) is not None:
                gauge.add_metric([reading.device.name], share)
        yield gauge
        if step >= 0:
            yield GaugeMetricFamily("tb_memplugin_step", "The training step that runs.", value=step)


def _fragmentation(reading: Reading) -> float | None:
    in_use, _, limit, largest, reserved = reading.counters
    free = free_bytes(in_use, limit, 0 if reading.device.source is CounterSource.TORCH else max(reserved, 0))
    share = float(fragmentation(free, largest))
    return None if isnan(share) else share
