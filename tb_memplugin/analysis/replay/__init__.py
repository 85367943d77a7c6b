"""Simulation of the peak after a hypothetical change."""
