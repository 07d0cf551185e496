"""Our solvers beside what a user would pick instead, in one run: ``python -m benchmarks``."""
