"""Input and output of commands, and answers from the fits that a logdir contains."""
