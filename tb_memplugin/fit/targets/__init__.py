"""Accelerators to compile for."""
