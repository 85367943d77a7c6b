"""Benchmarks. Run one as a module, such as `python -m benchmarks.rivals`; see README.md."""
