"""r-hat, effective sample sizes and thinning: against ArviZ and against known chains."""

import arviz as az
import numpy as np
import pytest
import xarray as xr
from scipy import stats

from surefoot.posterior.diagnostics import diagnose
from surefoot.posterior.independent_draws import correlated, thin


def autoregressive(chains, draws, quantities, rho, rng):
    values = np.empty((chains, draws, quantities))
    state = rng.normal(size=(chains, quantities))
    for i in range(draws):
        noise = rng.normal(size=(chains, quantities))
        state = rho * state + np.sqrt(1 - rho**2) * noise
        values[:, i] = state
    return values


@pytest.mark.parametrize("rho", [-0.3, 0.0, 0.5, 0.9])
@pytest.mark.parametrize("chains", [1, 4])
def test_agrees_with_arviz(rho, chains):
    values = np.exp(autoregressive(chains, 600, 1, rho, np.random.default_rng(0)))
    ours = diagnose(values)
    theirs = xr.Dataset({"x": (("chain", "draw"), values[:, :, 0])})
    if chains > 1:  # ArviZ gives no r-hat for one chain, we split it
        assert ours.rhat == pytest.approx(float(az.rhat(theirs)["x"]), rel=1e-3)
    assert ours.ess_bulk == pytest.approx(float(az.ess(theirs, method="bulk")["x"]), rel=0.03)
    assert ours.ess_tail == pytest.approx(float(az.ess(theirs, method="tail")["x"]), rel=0.05)


def test_effective_size_of_an_autoregressive_chain():
    rho = 0.8
    ours = diagnose(autoregressive(4, 5000, 1, rho, np.random.default_rng(1)))
    assert ours.ess_bulk == pytest.approx(20_000 * (1 - rho) / (1 + rho), rel=0.15)


def test_chains_that_disagree_are_seen_and_named():
    values = np.random.default_rng(2).normal(size=(4, 300, 3))
    values[0, :, 1] += 3.0
    found = diagnose(values, ["a", "b", "c"])
    assert found.rhat > 1.2
    assert found.worst == "b"
    assert "r-hat" in str(found)
    assert "b" in found.warnings[0]


def test_drift_within_one_chain_is_seen():
    values = np.random.default_rng(3).normal(size=(1, 400, 1)) + np.linspace(0, 3, 400)[:, None]
    assert diagnose(values).rhat > 1.1


def test_constants_are_left_out_and_short_chains_prove_nothing():
    values = np.random.default_rng(4).normal(size=(2, 100, 2))
    values[:, :, 1] = 1.0
    assert diagnose(values).rhat == diagnose(values[:, :, :1]).rhat
    assert diagnose(np.ones((2, 100, 1))).ess == 200
    assert not diagnose(values[:, :4]).rhat <= 1.05


@pytest.mark.parametrize("rho", [0.0, 0.6, 0.95])
def test_thinned_draws_are_uncorrelated(rho):
    values = autoregressive(4, 4000, 5, rho, np.random.default_rng(5))
    found = diagnose(values)
    kept = thin(values, found)
    assert len(kept.chosen) <= found.ess
    assert len(kept.chosen) >= 0.2 * found.ess
    thinned = values[:, :: kept.stride]
    assert not correlated(thinned)
    lag = np.corrcoef(thinned[:, 1:, 0].ravel(), thinned[:, :-1, 0].ravel())[0, 1]
    assert abs(lag) < 0.15


def test_order_statistics_of_thinned_draws_keep_their_level():
    """The strict lower order statistic fails with probability eta; without thinning far more."""
    rng = np.random.default_rng(6)
    delta, eta, runs = 0.1, 0.1, 300
    truth = stats.norm.ppf(delta)

    def too_high(values):
        values = np.sort(values)
        below = np.arange(len(values))
        rank = int(np.sum(stats.binom.cdf(below, len(values), delta) <= eta))
        return rank >= 1 and values[rank - 1] > truth

    thinned, naive = 0, 0
    for _ in range(runs):
        chains = autoregressive(2, 1500, 1, 0.9, rng)
        thinned += too_high(chains.ravel()[thin(chains, diagnose(chains)).chosen])
        naive += too_high(chains.ravel())
    assert stats.binom.sf(thinned - 1, runs, eta) > 1e-3
    assert naive > 2 * thinned
