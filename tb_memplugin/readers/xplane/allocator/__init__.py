"""Allocator events of a profile, as one Recording per allocator."""
