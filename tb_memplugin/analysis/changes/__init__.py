"""Causes of the change between two recordings of one program, from facts of each."""
