"""Answers for the page."""
