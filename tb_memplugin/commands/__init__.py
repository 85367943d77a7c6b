"""One file per command of `tb-memplugin`: its docstring is its help, `options` its arguments, `run` what it does."""
