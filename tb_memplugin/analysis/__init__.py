"""One question per file, each a pure function of a Recording."""
