"""Windows and scratch memory of Pallas kernels, read from the code of the kernels."""
