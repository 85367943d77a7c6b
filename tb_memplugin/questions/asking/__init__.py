"""Declarations of questions and their answers: endpoints, inputs, sources of recordings, and bounded JSON."""
