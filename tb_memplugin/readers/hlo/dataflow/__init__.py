"""Dataflow analysis of a compiled program: uses, derivations, arguments and results of its values."""
