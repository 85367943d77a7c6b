"""Protocol buffers' wire format."""
