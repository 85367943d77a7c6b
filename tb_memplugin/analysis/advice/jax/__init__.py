"""Advice for compiled JAX programs."""
