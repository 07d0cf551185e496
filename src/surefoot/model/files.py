"""Models in files: CSV as is common in the field, and npz, which keeps everything.

=====================  ==========================  =====================
what                   CSV                         npz
=====================  ==========================  =====================
rows, probabilities    yes                         yes
rewards                one per line                r(s,a) or r(s,a,s')
labels                 text or whole numbers       anything JSON can hold
discount               given when reading          yes
initial distribution   given when reading          yes
horizon, final reward  no (set by ``MDP.over``)    yes
=====================  ==========================  =====================

Numbers are written so that they are read back as the same bits. Nothing is ever pickled.
"""

from __future__ import annotations

import os
from pathlib import Path

from numpy.typing import ArrayLike

from surefoot.model.csv_files import read_csv, write_csv
from surefoot.model.mdp import MDP
from surefoot.model.npz_files import read_npz, write_npz

FORMATS = (".csv", ".csv.gz", ".npz")


def read_mdp(
    path: str | os.PathLike[str],
    discount: float | None = None,
    *,
    initial: ArrayLike | None = None,
) -> MDP:
    r"""Read a model from ``.csv``, ``.csv.gz`` or ``.npz``.

    A CSV file has one line per reachable successor and the columns ``idstatefrom``, ``idaction``,
    ``idstateto``, ``probability`` and ``reward``, in any order; ids count from 0. The optional
    columns ``labelstatefrom``, ``labelaction`` and ``labelstateto`` hold labels; a column of whole
    numbers gives integer labels. Other columns are ignored. A line with probability 0 declares a
    successor that is possible although the nominal model never goes there.

    Parameters
    ----------
    path
        The file.
    discount
        In [0, 1]. Needed for CSV; replaces the stored one for npz.
    initial
        Distribution of the first state. None means uniform for CSV and the stored one for npz.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file cannot be read; the message names the file, the line and the remedy.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "coin.csv"
    ...     _ = path.write_text(
    ...         "idstatefrom,idaction,idstateto,probability,reward\n"
    ...         "0,0,0,0.5,1\n0,0,1,0.5,0\n1,0,1,1,0\n"
    ...     )
    ...     read_mdp(path, discount=0.9)
    MDP(2 states, 1 action, 2 rows, 3 entries, discount 0.9)
    """
    source = Path(path)
    kind = _format_of(source)
    if not source.exists():
        raise FileNotFoundError(f"{source}: there is no such file.")
    if source.is_dir():
        raise ValueError(f"{source} is a folder; give a file that ends in {' or '.join(FORMATS)}.")
    if kind == ".npz":
        return read_npz(source, discount=discount, initial=initial)
    if discount is None:
        raise ValueError(f"{source}: a CSV file holds no discount. Pass discount=, in [0, 1].")
    return read_csv(source, discount=discount, initial=initial)


def write_mdp(mdp: MDP, path: str | os.PathLike[str]) -> None:
    """Write a model to ``.csv``, ``.csv.gz`` or ``.npz``; the file appears only once complete.

    CSV has no columns for the discount and the initial distribution: pass them again when reading.
    It has none for the horizon and the final reward either: set them again with `MDP.over`. npz
    keeps everything.

    Examples
    --------
    >>> import tempfile
    >>> mdp = MDP.from_arrays([[[0.3, 0.7]], [[0.0, 1.0]]], [[1.0], [0.0]], discount=0.9)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_mdp(mdp, Path(folder) / "model.npz")
    ...     read_mdp(Path(folder) / "model.npz").probability.tolist()
    [0.3, 0.7, 1.0]
    """
    target = Path(path)
    if _format_of(target) == ".npz":
        write_npz(mdp, target)
    else:
        write_csv(mdp, target)


def _format_of(path: Path) -> str:
    name = path.name.lower()
    for ending in FORMATS:
        if name.endswith(ending):
            return ending
    raise ValueError(f"{path}: the name must end in {', '.join(FORMATS[:-1])} or {FORMATS[-1]}.")
