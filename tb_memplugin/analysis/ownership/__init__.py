"""Attribution of memory to model paths, source lines, functions and roles."""
