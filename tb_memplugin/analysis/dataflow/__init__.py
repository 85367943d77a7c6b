"""A program's data flow: input-output pairs, first uses of arguments, the training step."""
