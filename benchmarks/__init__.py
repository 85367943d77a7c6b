"""Benchmarks, each a module to run: python -m benchmarks.cold_first_view. See README.md."""
