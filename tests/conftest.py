"""Being here puts this directory on the import path: tests share ``oracles`` and ``contracts``."""

import os

from hypothesis import settings

settings.register_profile("fixed", derandomize=True, database=None, deadline=None)
"""The same cases on every machine, every time: what the README's command runs.

A slow machine is no failure: no case has a deadline."""
settings.register_profile(
    "random", derandomize=False, max_examples=1000, print_blob=True, deadline=None
)
"""New cases every time: ``SUREFOOT_PROPERTIES=random``, a longer command of its own."""
settings.load_profile(os.environ.get("SUREFOOT_PROPERTIES", "fixed"))
