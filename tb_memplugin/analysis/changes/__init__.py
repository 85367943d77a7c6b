"""What changed between two recordings of one program, and why: facts of each, and the causes that they show."""
