"""Compiled candidates in the user's cache folder."""
