"""The model with a posterior's mean, used by nominal solves and reports."""

from dataclasses import replace
from typing import Any

from numpy.typing import ArrayLike

from surefoot.data.conversions import ABSORBING, WORST, lead_on
from surefoot.data.counts import Counts
from surefoot.model.mdp import MDP
from surefoot.posterior.protocol import Posterior


def mean_model(
    posterior: Posterior, counts: Counts, *, discount: float, initial: Any = None,
    unseen: str | None = None, horizon: int | None = None, final_reward: ArrayLike | None = None,
) -> MDP:  # fmt: skip
    """Return the model with a posterior's mean and the rewards of declared counts on its rows.

    The arguments are those of ``counts.to_mdp``; ``unseen=None`` lets the unseen state lead to the
    state of the log with the smallest value.

    Examples
    --------
    >>> import numpy as np
    >>> from surefoot import Counts, DirichletPosterior
    >>> counts = Counts.from_arrays([[[3, 1]], [[0, 2]]], rewards=[[0.0], [1.0]]).on_support("all")
    >>> mdp = mean_model(DirichletPosterior(counts), counts, discount=0.9)
    >>> np.array_equal(mdp.probability, counts.to_mdp(discount=0.9, prior=1.0).probability)
    True
    """
    observed = counts.to_mdp(
        discount=discount, initial=initial, unseen=ABSORBING, horizon=horizon,
        final_reward=final_reward,
    )  # fmt: skip
    posterior.check_matches(observed)
    mdp = replace(observed, probability=posterior.mean())
    return lead_on(mdp, counts, unseen or WORST)
