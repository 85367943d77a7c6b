"""Processes that compile, and their limits."""
