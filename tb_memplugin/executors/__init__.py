"""Executors of tasks: processes and threads of this machine, or the workers of a dask cluster."""
