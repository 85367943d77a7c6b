"""Text columns."""
