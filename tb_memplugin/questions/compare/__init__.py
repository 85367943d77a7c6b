"""Comparisons of recordings: with each other, with a baseline, and with a budget."""
