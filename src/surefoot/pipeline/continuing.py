"""From a log to counts: on its own, or as what goes on from an earlier run."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from surefoot.data.bins import Binning, write_bins
from surefoot.data.boundaries import (
    Boundaries,
    continued,
    joined,
    load_boundaries,
    read_boundaries,
    save_boundaries,
)
from surefoot.data.counts import Counts
from surefoot.pipeline.folder import BINS, EPISODES
from surefoot.pipeline.model import WRITTEN, column_roles, log_sources, read_log
from surefoot.pipeline.settings import Settings


class Counted(NamedTuple):
    """Counts, and where their episodes stop; None where the log does not tell."""

    counts: Counts
    boundaries: Boundaries | None

    def write(self, folder: Path) -> None:
        """Write what a later run needs to go on from here, and the bins."""
        if self.boundaries is not None:
            save_boundaries(folder / EPISODES, self.boundaries)
        if self.counts.log is not None and self.counts.log.bins:
            write_bins(folder / BINS, self.counts.log.bins)

    @property
    def files(self) -> list[str]:
        """Return the names of the files that are written."""
        binned = self.counts.log is not None and bool(self.counts.log.bins)
        listed = {EPISODES: self.boundaries is not None, BINS: binned}
        return [name for name, there in listed.items() if there]


def count_log(settings: Settings, earlier: Counts | None) -> Counted:
    """Read the log of the settings, and add it to the counts of an earlier run where it has one."""
    bins = _earlier_bins(settings, earlier)
    counts = read_log(settings, bins)
    before = _earlier_boundaries(settings)
    here = _boundaries(settings, counts, settings.seed if before is None else before.seed)
    if earlier is None:
        return Counted(counts, here)
    if here is not None and before is not None:
        counts = continued(counts, here, before)
        here = joined(before, here)
    return Counted(earlier + counts, here)


def _boundaries(settings: Settings, counts: Counts, seed: int) -> Boundaries | None:
    if settings.episode is None or settings.step is None or settings.count is not None:
        return None
    roles = column_roles(settings)
    columns: dict[str, Any] = {"state": "state", "action": "action", "next_state": "next_state"}
    columns |= {name: value for name, value in roles.items() if name not in (*WRITTEN, "missing")}
    found: Boundaries | None = None
    for source in log_sources(settings):
        one = read_boundaries(
            source, counts, columns | {"count": None}, settings.reading, seed=seed
        )
        found = one if found is None else joined(found, one)
    return found


def _earlier_boundaries(settings: Settings) -> Boundaries | None:
    if settings.add is None or not (Path(settings.add) / EPISODES).is_file():
        return None
    return load_boundaries(Path(settings.add) / EPISODES)


def known_episodes(settings: Settings) -> Any:
    """Return the hashed labels of the earlier run's episodes, if the seed is the same."""
    before = _earlier_boundaries(settings)
    if before is None or before.seed != settings.seed:
        return np.zeros(0, dtype=np.uint64)
    return before.identity


def _earlier_bins(settings: Settings, earlier: Counts | None) -> tuple[Binning, ...]:
    """Return the edges of an earlier run, which the new log must be cut with too."""
    if earlier is None or earlier.log is None:
        return ()
    asked = settings.reading.bins
    known = {one.column: one for one in earlier.log.bins}
    for one in asked:
        if one.column not in known or (one.edges and one.edges != known[one.column].edges):
            raise ValueError(
                f"bins: the earlier run cut {one.column!r} otherwise. Leave out bins= to go on "
                "with its edges, or read both logs anew."
            )
    return earlier.log.bins
