"""Compiling candidates: here, in a process of its own, or on a cluster."""
