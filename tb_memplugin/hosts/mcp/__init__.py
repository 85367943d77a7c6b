"""A server of the Model Context Protocol: answers about a logdir for coding agents.

- server: the protocol, on standard input and output
- tools: the tools and their answers
- reader: the recordings of the logdir, by names in it
"""
