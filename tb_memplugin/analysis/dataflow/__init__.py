"""Questions about a program's data flow: input-output pairs, first uses, the training step."""
