"""From a log to counts, alone or added to the counts of an earlier run."""

from dataclasses import replace
from typing import Any

from surefoot.data.bins import Binning
from surefoot.data.boundaries import continued, only_across, read_ends
from surefoot.data.counts import Counts
from surefoot.data.episode_ends import EpisodeEnds, joined
from surefoot.data.faults import NoTransitionError
from surefoot.pipeline.model import WRITTEN, column_roles, log_sources, read_log
from surefoot.pipeline.settings import Settings


def count_log(settings: Settings, earlier: Counts | None = None) -> Counts:
    """Read the log of the settings, and add it to the counts of an earlier run if there is one."""
    before = None if earlier is None or earlier.log is None else earlier.log.ends
    try:
        counts = read_log(settings, _earlier_bins(settings, earlier))
    except NoTransitionError:
        both = None if earlier is None else _single_rows(settings, earlier, before)
        if both is None:
            raise
        return both
    here = ends_of(settings, counts, settings.seed if before is None else before.seed)
    if here is not None and before is not None:
        counts = continued(counts, here, before)
    if here is not None and counts.log is not None:
        counts = replace(counts, log=replace(counts.log, ends=here))
    return counts if earlier is None else earlier + counts


def _single_rows(settings: Settings, earlier: Counts, before: EpisodeEnds | None) -> Counts | None:
    """Return earlier counts plus the steps into a log of single rows; None if there are none."""
    here = None if before is None else ends_of(settings, earlier, before.seed)
    if here is None or before is None:
        return None
    name = settings.log[0] if len(settings.log) == 1 else f"{len(settings.log)} files"
    return only_across(earlier, here, before, name)


def ends_of(settings: Settings, counts: Counts, seed: int) -> EpisodeEnds | None:
    """Return where the episodes of a log begin and stop; None if it does not tell them apart."""
    if settings.episode is None or settings.step is None or settings.count is not None:
        return None
    roles = column_roles(settings)
    columns: dict[str, Any] = {"state": "state", "action": "action", "next_state": "next_state"}
    columns |= {name: value for name, value in roles.items() if name not in (*WRITTEN, "missing")}
    found: EpisodeEnds | None = None
    for source in log_sources(settings):
        one = read_ends(source, counts, columns | {"count": None}, settings.log_format, seed=seed)
        found = one if found is None else joined(found, one)
    return found


def _earlier_bins(settings: Settings, earlier: Counts | None) -> tuple[Binning, ...]:
    """Return the bins of an earlier run, which the new log must use too."""
    if earlier is None or earlier.log is None:
        return ()
    asked = settings.log_format.bins
    known = {one.column: one for one in earlier.log.bins}
    for one in asked:
        if one.column not in known or (one.edges and one.edges != known[one.column].edges):
            raise ValueError(
                f"bins: the earlier run cut {one.column!r} differently. Leave out bins= to keep "
                "its edges, or read both logs again."
            )
    return earlier.log.bins
