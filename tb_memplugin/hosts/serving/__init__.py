"""A web server of our own, for hosts that do not bring one: its sockets, its limits, and the names it answers to."""
