"""ArviZ announces its refactoring once a day, at import; nothing of ours is to blame."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)
    import arviz  # noqa: F401
