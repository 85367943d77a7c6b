"""Host threads of a profile: events, call stacks, steps and annotations."""
