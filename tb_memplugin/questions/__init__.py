"""One module for each question: its typed answer, and what the page, JSON, the terminal and exports derive from it."""
