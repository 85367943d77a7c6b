"""Parsers of out-of-memory messages, one module per framework and message family."""
