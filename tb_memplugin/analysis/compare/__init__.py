"""Differences between two recordings or two positions of one."""
