"""Memory that grows over steps or snapshots."""
