"""What a training script or a test calls: it runs beside the program, and writes where it is told to."""

from tb_memplugin.capture.device_profiles import on_oom, snapshot, snapshot_every
from tb_memplugin.capture.live_arrays import track

__all__ = ["on_oom", "snapshot", "snapshot_every", "track"]
