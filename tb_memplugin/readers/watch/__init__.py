"""Files of capture.watch: the memory of each device of a process, read at intervals while it runs."""

from tb_memplugin.readers.watch.recordings import open_watch

__all__ = ["open_watch"]
