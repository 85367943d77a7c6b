"""Questions about one device among many: what it is made of, how far it is from the others, and why."""
