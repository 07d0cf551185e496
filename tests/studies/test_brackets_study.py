"""The study of brackets: a worse policy is found out, and shares are what they are called."""

import numpy as np
import pytest

from surefoot import DirichletPosterior, optimize
from surefoot.domains.catalogue import as_domain
from surefoot.studies import brackets
from surefoot.studies.brackets import bracket


@pytest.fixture(scope="module")
def small():
    counts = as_domain("machine").simulate(20, np.random.default_rng(0))
    return DirichletPosterior(counts), counts.to_mdp(discount=0.95, prior=1.0)


def missed(small, policy, monkeypatch):
    monkeypatch.setattr(brackets, "LONG_DRAWS", 200)
    rng = np.random.default_rng(1)
    return brackets._found_by_long_search(*small, np.asarray(policy), 0.1, rng)


def test_a_policy_that_was_not_searched_for_is_found_out(small, monkeypatch):
    posterior, mdp = small
    found = optimize(posterior, mdp, delta=0.1, draws=400, rng=np.random.default_rng(0)).certificate
    poor = 1 - np.asarray(found.policy)  # the other action everywhere
    assert missed(small, poor, monkeypatch) > 0.1 * abs(found.lower_bound)
    assert missed(small, found.policy, monkeypatch) < 0.02 * abs(found.lower_bound)


def test_shares_are_of_the_bracket(monkeypatch):
    monkeypatch.setattr(brackets, "LONG_DRAWS", 200)
    found = bracket("machine", delta=0.1, samples=20, seed=0, draws=400)
    assert found.promise <= found.limit
    assert min(found.search, found.relaxation, found.monte_carlo) >= 0
    assert (
        found.plain
        >= found.width
        == pytest.approx((found.limit - found.promise) / abs(found.promise))
    )
    # All three say where the bracket comes from, up to the noise of a few draws.
    assert found.search + found.relaxation + found.monte_carlo >= 0.5 * found.width
