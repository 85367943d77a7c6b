"""Questions about one kind of recording: figures, headlines, leaks, call graphs, and programs of a runtime's memory."""
