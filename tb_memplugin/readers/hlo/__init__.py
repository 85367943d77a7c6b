"""HloProto: buffers of a compiled program, their addresses, and their lifetimes in program order.

Data flows from module/ (tables of the file, schedule) to dataflow/ (uses and values) to lifetimes/ (placement), and
from these to columns and recordings.
"""

from tb_memplugin.readers.hlo.recordings import read_hlo

__all__ = ["read_hlo"]
