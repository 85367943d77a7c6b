"""Planes, lines and events of a profile."""
