"""Advice for every kind of recording."""
