"""Texts and encodings that several views share."""
