"""Allocations in the address space: fragmentation and overlap."""
