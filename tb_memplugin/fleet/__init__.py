"""Summaries of many hosts: one task for each file, on the cores of this machine or on a cluster."""
