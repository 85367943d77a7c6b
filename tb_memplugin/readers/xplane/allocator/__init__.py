"""Allocator events of a profile: one Recording per allocator."""
