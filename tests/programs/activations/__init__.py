"""Training steps whose activations can be rematerialized, split into microbatches or offloaded."""
