"""Being here puts this directory on the import path: tests share ``oracles`` and ``contracts``."""
