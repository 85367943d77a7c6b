"""HloProto: a compiled program's buffers, where they lie, and when they live in program order.

module (tables of the file) -> schedule (the axis) -> nodes, flows, dataflow (reads) -> placement -> recordings
"""

from tb_memplugin.readers.hlo.recordings import read_hlo

__all__ = ["read_hlo"]
