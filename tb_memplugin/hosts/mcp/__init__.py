"""A server of the Model Context Protocol: answers about a logdir for coding agents.

- server: the protocol, on standard input and output
- tools: the six tools
- reading: what a name in a call selects of the logdir
"""
