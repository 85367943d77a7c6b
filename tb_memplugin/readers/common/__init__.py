"""Helpers that several file formats share."""
