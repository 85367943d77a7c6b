"""A memory profiler for TPU and GPU programs, as a plugin for TensorBoard and XProf and as a command-line tool."""

__version__ = "0.1.0"
