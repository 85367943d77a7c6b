"""Advice for PyTorch snapshots."""
