"""The peak after a hypothetical change."""
