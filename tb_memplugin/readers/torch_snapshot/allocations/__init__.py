"""Allocations of a snapshot: lifetimes, addresses, labels and operators."""
