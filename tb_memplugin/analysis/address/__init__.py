"""Positions of allocations in the address space: fragmentation and overlap."""
