"""Tables of an HloProto: instructions, shapes, schedule, call stacks and sharding."""
