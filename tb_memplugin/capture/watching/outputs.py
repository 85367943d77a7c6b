"""Other programs that show the samples, each by a package that may be missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from tb_memplugin.capture.guard import Quietly, logger, warn
from tb_memplugin.capture.new_files import is_remote
from tb_memplugin.capture.watching.counters import Reading

NOT_SHOWN = "memory is not shown by another program, and training continues"
NO_METRICS = "memory is not served as metrics, and training continues"
NO_SCALARS = "memory is not written as scalars, and training continues"


class Output(Protocol):
    """Something that shows samples."""

    def show(self, readings: list[Reading], step: int) -> None: ...
    def close(self) -> None: ...


class Outputs(NamedTuple):
    """The outputs that a job asks for: a port for Prometheus, and scalars for TensorBoard."""

    port: int | None
    tensorboard: bool


def open_outputs(wanted: Outputs, folder: Callable[[], str]) -> list[Output]:
    """Return the outputs that can be opened; the others are lines of the log. `folder`: of the run, when it exists."""
    found: list[Output] = []
    if wanted.port is not None:
        with Quietly(NO_METRICS):
            try:
                from tb_memplugin.capture.watching.metrics import LOOPBACK, PrometheusMetrics

                metrics = PrometheusMetrics(wanted.port)
                found.append(metrics)
                logger.info("tb_memplugin: memory is served at http://%s:%d/metrics", LOOPBACK, metrics.port)
            except ImportError:
                warn(NO_METRICS, "the package prometheus-client is missing: pip install 'tb-memplugin[watch]'")
    if wanted.tensorboard:
        with Quietly(NO_SCALARS):
            try:
                from tb_memplugin.capture.watching.scalars import TensorBoardScalars

                found.append(TensorBoardScalars(lambda: _local(folder())))
            except ImportError:
                warn(NO_SCALARS, "the package tensorboard is missing: pip install tensorboard")
    return found


def _local(folder: str) -> str:
    if is_remote(folder):
        raise OSError(f"scalars can be written to local folders only, not to {folder}")
    return folder
