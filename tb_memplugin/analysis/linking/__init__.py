"""Links between recordings: runtime allocations to programs, programs that share a device."""
