"""What a training script or a test calls: it runs beside the program, and writes where it is told to."""

from tb_memplugin.capture.device_profiles import on_oom, snapshot, snapshot_every
from tb_memplugin.capture.live_arrays import track
from tb_memplugin.capture.programs import assert_fits, compiled, report

__all__ = ["assert_fits", "compiled", "on_oom", "report", "snapshot", "snapshot_every", "track"]
