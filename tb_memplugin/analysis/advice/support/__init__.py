"""Program structure that several kinds of advice use."""
