"""The file that holds the parts of a log."""

from pathlib import Path

import numpy as np

from surefoot._atomic import replacing
from surefoot.data.buckets import BucketCounts

_ARRAYS = ("entry", "bucket", "count", "reward_mean", "reward_var", "starts")


def save_parts(path: Path, buckets: BucketCounts) -> None:
    """Write the parts of a log."""
    arrays = {name: getattr(buckets, name) for name in _ARRAYS}
    with replacing(path, "wb") as file:
        np.savez_compressed(file, **{k: v for k, v in arrays.items() if v is not None})


def load_parts(path: Path) -> BucketCounts:
    """Read the parts of a log back."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return BucketCounts(**{name: file[name] for name in _ARRAYS if name in file})
    except Exception as problem:  # a damaged file can fail anywhere, in any way
        reason = " ".join(str(problem).split()) or type(problem).__name__
        raise ValueError(f"{path}: these are not the parts of a log ({reason}).") from None
