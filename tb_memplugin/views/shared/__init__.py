"""Texts and encodings that several views use."""
