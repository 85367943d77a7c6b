"""Endpoints: declarations from which the server's routes, the page's typed client and offline reports are made."""
