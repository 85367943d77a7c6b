"""Samples of pprof profiles."""
