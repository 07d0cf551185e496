"""The futures of a run: the ways of collecting data, and the promise after each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from surefoot.certificates.allocation import Distance
from surefoot.certificates.certificate import Certificate
from surefoot.certificates.row_doubt import RowDoubt
from surefoot.pipeline.finished_runs import stored_parts
from surefoot.pipeline.future import Future, NewData, Truth
from surefoot.pipeline.honest import CERTIFYING
from surefoot.pipeline.parts import log_of
from surefoot.pipeline.runs import Run, earlier_counts
from surefoot.pipeline.schemes import (
    HABITS,
    EpisodePlan,
    Ints,
    PlannedEpisodes,
    SameEpisodes,
    Scheme,
    Shared,
    Tries,
)

TRIES, EPISODES, SAME, EXPLORE = "tries", "episodes", "same", "explore"


@dataclass(frozen=True, kw_only=True, eq=False)
class Outlook:
    """Ways to collect data for a run, and the promise each leads to.

    Attributes
    ----------
    future
        The promise as a function of data.
    schemes
        By name: ``"tries"``, ``"episodes"`` if the log has some, ``"same"``, ``"explore"``.
    episodes
        The episodes that could be collected; None if the log has none.
    honest
        Whether only half of the data are used to certify.
    whole
        Whether only whole episodes can be collected.
    """

    future: Future
    schemes: Mapping[str, Scheme]
    episodes: EpisodePlan | None
    honest: bool
    whole: bool = False

    @property
    def main(self) -> str:
        """The way of collecting data that is simulated for all numbers of samples."""
        return EPISODES if self.whole else TRIES

    def promise(self, way: str, samples: int, truth: Truth, rng: np.random.Generator) -> float:
        """Return the promise after a number of samples in one simulated future."""
        data = self.schemes[way].data(truth, samples, rng)
        return self.future.promise(self._certifying(data), truth, rng)

    def _certifying(self, data: NewData) -> NewData:
        """Return the data in the certifying part of the log, with half of the starts."""
        if not self.honest:
            return data
        here = np.isin(data.part, CERTIFYING)
        starts = None if data.starts is None else data.starts // 2
        return replace(data, entry=data.entry[here], part=data.part[here], starts=starts)


def in_one_future(
    outlook: Outlook, cells: Sequence[tuple[str, int]], rng: np.random.Generator,
    told: Callable[[int, str, int], None] | None = None,
) -> list[float]:  # fmt: skip
    """Return the promise after each way and number of samples, all in one simulated future.

    ``told`` is called with how many are done, and with the way and the samples of the last one.
    """
    truth = outlook.future.truth(rng)
    found: list[float] = []
    for way, samples in cells:
        found.append(outlook.promise(way, samples, truth, rng))
        if told is not None:
            told(len(found), way, samples)
    return found


def outlook_of(
    run: Run, certificate: Certificate, doubt: RowDoubt, explore: Ints, *, whole: bool = False
) -> Outlook:
    """Return the outlook of a run; ``certificate`` is the run's, in rewards."""
    model = run.model
    log = None
    if certificate.curse is not None:
        parts = stored_parts(run.settings, run.folder, earlier_counts(run.folder))
        log = log_of(model, parts.buckets)
    future = Future(model=model, certificate=certificate, log=log, seed=model.settings.seed)
    episodes = EpisodePlan.of(model, certificate.policy)
    if whole and episodes is None:
        raise ValueError(
            f"episodes=True, but the log of {run.folder} does not tell episodes apart."
        )
    schemes: dict[str, Scheme] = {TRIES: Tries(distance=Distance.of(doubt), rows=doubt.rows)}
    if episodes is not None:
        schemes[EPISODES] = PlannedEpisodes(plan=episodes, doubt=doubt)
        usual = next(
            j for j, kind in enumerate(episodes.kinds)
            if kind.start is None and kind.behaviour == HABITS
        )  # fmt: skip
        schemes[SAME] = SameEpisodes(plan=episodes, kind=usual)
    else:
        visits = model.placed.visits.astype(np.float64)
        schemes[SAME] = Shared(share=visits / visits.sum())
    if whole:
        del schemes[TRIES]
    if len(explore) and not whole:
        share = np.zeros(model.mdp.num_rows)
        share[explore] = 1.0 / len(explore)
        schemes[EXPLORE] = Shared(share=share)
    return Outlook(
        future=future,
        schemes=schemes,
        episodes=episodes,
        honest=model.settings.honest,
        whole=whole,
    )
