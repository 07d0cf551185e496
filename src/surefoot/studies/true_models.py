"""True models for coverage studies, and the counts that a log of them shows."""

import dataclasses

import numpy as np

from surefoot.data.counts import Counts
from surefoot.domains.domain import Domain
from surefoot.posterior.dirichlet import DirichletPosterior


def from_prior(domain: Domain, rng: np.random.Generator) -> Domain:
    """Return the domain with its rows drawn from its prior.

    Examples
    --------
    >>> from surefoot.domains import riverswim
    >>> drawn = from_prior(riverswim(), np.random.default_rng(0))
    >>> drawn.mdp.num_entries, bool(drawn.mdp.probability[1] == riverswim().mdp.probability[1])
    (22, False)
    """
    nothing = Counts.on_rows_of(domain.mdp, np.zeros(domain.mdp.num_entries, dtype=np.int64))
    drawn = DirichletPosterior(nothing, prior=domain.prior).sample(1, rng)[0]
    return dataclasses.replace(domain, mdp=dataclasses.replace(domain.mdp, probability=drawn))


def as_logged(declared: Counts) -> Counts:
    """Return the counts as a log shows them: only successors and rewards that were seen.

    Examples
    --------
    >>> from surefoot.domains import riverswim
    >>> declared = riverswim().simulate(1, np.random.default_rng(0))
    >>> declared.num_entries, as_logged(declared).num_entries
    (22, 12)
    """
    if declared.reward_mean is None:
        raise ValueError("these counts have no rewards; simulate them from a domain.")
    rows = declared.entry_row
    index = (declared.row_state[rows], declared.row_action[rows], declared.successor)
    shape = (declared.num_states, declared.num_actions, declared.num_states)
    counts, rewards = np.zeros(shape, dtype=np.int64), np.full(shape, np.nan)
    counts[index] = declared.count
    rewards[index] = np.where(declared.count > 0, declared.reward_mean, np.nan)
    return Counts.from_arrays(
        counts,
        rewards=rewards,
        state_labels=declared.state_labels,
        action_labels=declared.action_labels,
    )
