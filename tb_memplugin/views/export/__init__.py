"""Recordings as CSV, JSON, Parquet and standalone reports."""
