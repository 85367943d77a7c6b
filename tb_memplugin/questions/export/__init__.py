"""Recordings in files: tables as CSV, JSON and Parquet, and offline reports."""
