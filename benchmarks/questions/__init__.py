"""Twenty questions of an agent about stored and generated profiles, answered through the commands' JSON alone."""
