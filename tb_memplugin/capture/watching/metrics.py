"""Metrics of the watched memories for Prometheus, on loopback unless the job asks for more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from tb_memplugin.capture.watching.counters import Reading
from tb_memplugin.capture.watching.gauges import GAUGES, PREFIX, Gauge


class PrometheusMetrics(Collector):
    """A server for the latest sample. OSError where the port is in use, or the address is not of this machine.

    The sample is replaced as a whole, so a request in another thread sees one sample only.
    """

    def __init__(self, port: int, host: str) -> None:
        """`port`: 0 for any free one."""
        self._latest: Sequence[Gauge] = ()
        registry = CollectorRegistry()
        registry.register(self)
        self._server, _ = start_http_server(port, host, registry)

    @property
    def port(self) -> int:
        return int(self._server.server_port)

    def show(self, readings: list[Reading], step: int, gauges: Sequence[Gauge]) -> None:
        self._latest = gauges

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        gauges = self._latest
        for name, (text, labels) in GAUGES.items():
            family = GaugeMetricFamily(f"{PREFIX}_{name}", text, labels=labels)
            for gauge in gauges:
                if gauge.name == name:
                    family.add_metric(gauge.labels, gauge.value)
            if labels or family.samples:
                yield family
