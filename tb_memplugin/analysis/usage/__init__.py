"""Live bytes over the axis, their peak, and the figures that summarize them."""
