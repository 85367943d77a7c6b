"""Program structure that several pieces of advice need."""
