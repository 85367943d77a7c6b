"""Accelerators by name, and the memory that programs may use of each."""
