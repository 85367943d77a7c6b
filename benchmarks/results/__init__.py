"""Figures that were measured, and the pages' tables and plot that are made of them."""
