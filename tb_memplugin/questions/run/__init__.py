"""Questions about runs: which there are, an overview of one, and files that the page adds."""
