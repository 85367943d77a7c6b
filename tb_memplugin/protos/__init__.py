"""Trimmed descriptions of the formats we read, and the code generated from them by `make protos`."""
