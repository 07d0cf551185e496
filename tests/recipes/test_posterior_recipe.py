"""CONTRIBUTING, "A new posterior", followed literally: a mixture of two known models."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.posterior.protocol import check_draws_wanted, stream_key
from surefoot.posterior.rows import OnRows, RowLayout


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TwoModels(OnRows):
    """Either of two models, equally likely: a posterior that never saw counts."""

    layout: RowLayout
    models: np.ndarray
    counts: None = None

    @property
    def independent_rows(self):
        """Whether rows are independent: all of a draw's rows come from one model."""
        return False

    @property
    def num_draws(self):
        """There is no end to the draws."""
        return None

    @property
    def identity(self):
        """Both models."""
        return self.models

    def mean(self):
        """Return the mean of the two."""
        return self.models.mean(axis=0)

    def sample(self, n, rng):
        """Return draws, ``(n, E)``."""
        return next(self.stream(n, rng))

    def stream(self, n, rng, rows=None):
        """Yield the same draws for some rows, in one block."""
        picks = np.random.default_rng(stream_key(rng)).integers(0, 2, check_draws_wanted(n))
        entries = self.layout.entries_of(self.layout.check_rows(rows))
        return iter([self.models[picks][:, entries]])

    def __repr__(self):
        return "TwoModels"


def toy() -> tuple[Any, sf.MDP]:
    mdp = sf.riverswim().mdp
    counts = sf.Counts.on_rows_of(mdp, np.zeros(mdp.num_entries))
    models = sf.DirichletPosterior(counts).sample(2, np.random.default_rng(0))
    return TwoModels(layout=RowLayout.of(mdp), models=models), mdp


def test_it_satisfies_the_protocol():
    posterior, mdp = toy()
    assert isinstance(posterior, sf.Posterior)
    assert posterior.matches(mdp)
    whole = posterior.sample(20, np.random.default_rng(1))
    part = next(posterior.stream(20, np.random.default_rng(1), rows=[3, 1]))
    np.testing.assert_array_equal(part, whole[:, posterior.layout.entries_of(np.array([3, 1]))])


def test_its_certificate_says_that_rewards_are_taken_as_exact():
    posterior, mdp = toy()
    result = sf.optimize(posterior, mdp, delta=0.1, draws=400, rng=np.random.default_rng(2))
    assert "successors as complete and its rewards as exact" in result.certificate.sentence
    returns = [
        sf.evaluate(
            sf.MDP.from_rows(
                state=mdp.entry_state, action=mdp.entry_action, successor=mdp.successor,
                probability=model, reward=mdp.entry_reward,
                discount=mdp.discount, initial=mdp.initial,
            ),
            result.certificate.policy,
        ).return_lower
        for model in posterior.models
    ]  # fmt: skip
    assert result.certificate.lower_bound == pytest.approx(min(returns), rel=1e-4)
    assert sf.verify(result.certificate, posterior, mdp).stands


def test_a_class_that_lacks_something_is_told_what():
    posterior, mdp = toy()

    class Old:
        """What satisfied the protocol before counts and identity belonged to it."""

        num_entries, row_start, support = posterior.num_entries, posterior.row_start, None
        independent_rows, num_draws = False, None
        mean, sample, stream = posterior.mean, posterior.sample, posterior.stream
        matches, check_matches = posterior.matches, posterior.check_matches

    policy = np.zeros(mdp.num_states, dtype=int)
    with pytest.raises(ValueError, match="Old is not a Posterior: it lacks counts, identity"):
        sf.certify(policy, Old(), mdp, delta=0.1, draws=400, rng=np.random.default_rng(0))
