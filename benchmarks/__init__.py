"""Benchmarks. Run one as a module, such as `python -m benchmarks.cold_first_view`; see README.md."""
