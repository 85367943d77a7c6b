"""Compiled loops. The tests have a plain Python counterpart of each."""
