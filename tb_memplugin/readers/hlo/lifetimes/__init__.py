"""Lifetimes of logical buffers on a program's flattened schedule."""
