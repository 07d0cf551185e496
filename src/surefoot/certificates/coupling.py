"""Which coupling of the actions of a state serves the limit best."""

import numpy as np
from numpy.typing import NDArray

from surefoot.certificates.models import restricted
from surefoot.model.mdp import MDP
from surefoot.posterior.coupled import CoupledRows, can_couple
from surefoot.posterior.protocol import Posterior
from surefoot.posterior.rows import RowLayout
from surefoot.solvers.evaluation.returns import usual_tolerance
from surefoot.solvers.evaluation.rewards import Rewards
from surefoot.solvers.solver import evaluate


def coupled(
    posterior: Posterior, mdp: MDP, rewards: Rewards, rows: NDArray[np.int64]
) -> CoupledRows | None:
    """Return a posterior with coupled rows, by their worth to a policy; None where it has none.

    ``rows`` are those that the policy plays, one a state: what follows a step is worth what it is
    under that policy in the model at hand. Any worth that is fixed before the draws gives a valid
    bound; this one makes the actions of a state alike in what matters to a good policy. A policy
    by step may play several rows of one state, so that there is no coupling over a horizon.
    """
    if mdp.horizon is not None or not can_couple(posterior):
        return None
    own = restricted(mdp, np.arange(mdp.num_rows), mdp.probability, rewards)
    policy = mdp.row_action[rows].astype(np.int64)
    value = evaluate(own, policy, tolerance=usual_tolerance(own)).value
    worth = rewards.fixed + mdp.discount * value[mdp.successor]
    return CoupledRows(posterior, RowLayout.of(mdp), worth)
