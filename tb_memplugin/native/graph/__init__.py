"""Graph traversals, stack trees, call graphs and free address ranges."""
