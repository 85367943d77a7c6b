"""XLA dump folders: a compiled program with the files that XLA writes beside it.

- target: the chip that a program was compiled for
- reports: XLA's own totals, to check those of the recordings
- reserved: the memory that a program reserves, without reading the rest of it
"""
