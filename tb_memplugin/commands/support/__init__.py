"""What commands share: their input, their output, and answers that a logdir already contains."""
