"""Draws, evaluations and sweeps on a GPU, through JAX; checked on the CPU in plain NumPy.

Nothing here needs numba or DuckDB, so that it runs on machines where nothing can be installed.
JAX is imported when a device is first asked for.
"""
