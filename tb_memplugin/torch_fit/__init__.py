"""Tracing PyTorch programs without a GPU."""
