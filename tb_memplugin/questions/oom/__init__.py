"""Questions about out-of-memory failures: cause, symptoms, and hints."""
