"""Watching a job that runs: the memory of its devices over time, and device profiles when it is about to run out."""

from tb_memplugin.capture.watching.watcher import Watch, watch

__all__ = ["Watch", "watch"]
