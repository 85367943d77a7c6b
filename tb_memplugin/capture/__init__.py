"""What a training script or a test calls: it runs beside the program, and writes where it is told to."""

from tb_memplugin.capture.live_arrays import track

__all__ = ["track"]
