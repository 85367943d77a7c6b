"""Recordings as CSV, JSON, Parquet and offline reports."""
