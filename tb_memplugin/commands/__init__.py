"""Commands of `tb-memplugin`, one file each: the docstring is the help, `options` the arguments, `run` the action."""
