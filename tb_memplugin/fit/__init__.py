"""Compiling a step for accelerators that are not here, to find out whether it fits and what the largest batch is."""
