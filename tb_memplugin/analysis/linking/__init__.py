"""Links between recordings: runtime allocations and their programs, programs that share a device."""
