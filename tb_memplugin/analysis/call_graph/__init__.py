"""Call graphs over stacks, with pprof's figures."""
