"""Population growth and inventory: known optima, exact laws, simulation against the definition."""

import numpy as np
import pytest

from surefoot.domains import inventory, population_growth
from surefoot.domains.domain import Domain
from surefoot.domains.population import GROWTH_SD, growth_mean, transition_law


def optimal_return(mdp):
    """Plain value iteration on dense arrays, to an error below 1e-9 of the value."""
    transitions, rewards = mdp.to_arrays()
    gain = rewards if rewards.ndim == 2 else (transitions * rewards).sum(axis=2)
    gain = np.where(mdp.available, gain, -np.inf)
    value = np.zeros(mdp.num_states)
    for _ in range(600):
        value = (gain + mdp.discount * (transitions @ value)).max(axis=1)
    return float(mdp.initial @ value)


@pytest.mark.parametrize(
    ("domain", "published"),
    [
        (population_growth(), -4080.26),
        (population_growth(drop_below=0), -4088.59),
        (inventory(), 161.6),
    ],
    ids=["population", "population, whole law", "inventory"],
)
def test_nominal_returns(domain, published):
    digits = 1 if domain.name == "inventory" else 2
    assert round(optimal_return(domain.mdp), digits) == published


def test_population_shape():
    mdp = population_growth().mdp
    assert (mdp.num_states, mdp.num_actions, mdp.num_rows) == (51, 5, 255)
    assert mdp.probability[mdp.probability > 0].min() >= 5e-5
    assert population_growth(drop_below=0).mdp.probability.min() < 5e-5


@pytest.mark.parametrize(("size", "action"), [(25, 0), (25, 3), (15, 4), (5, 1), (48, 2), (0, 1)])
def test_population_law_agrees_with_simulation(size, action):
    rng = np.random.default_rng([size, action])
    n = 200_000
    growth = np.maximum(0.0, rng.normal(growth_mean(size, action), GROWTH_SD[action], n))
    grown = np.clip(np.rint(size + (growth - 1) * size * (50 - size) / 50), 0, 50)
    arrivals = np.rint(np.maximum(0.0, rng.normal(3.0, 1.5, n)))
    following = np.clip(grown + arrivals, 0, 50).astype(int)
    observed = np.bincount(following, minlength=51) / n
    law = transition_law()[size, action]
    assert np.all(np.abs(observed - law) <= 5 * np.sqrt(law * (1 - law) / n) + 1e-5)


def test_population_law_is_a_law():
    law = transition_law()
    assert np.all(law >= 0)
    np.testing.assert_allclose(law.sum(axis=2), 1.0, rtol=0, atol=1e-12)


@pytest.mark.parametrize("bad", [-1e-3, 0.5, np.nan])
def test_population_threshold_is_checked(bad):
    with pytest.raises(ValueError, match="drop_below"):
        population_growth(drop_below=bad)


def test_inventory_offers_no_overfilling_order():
    mdp = inventory().mdp
    assert mdp.available[20].all()
    assert mdp.available[25].tolist() == [order <= 5 for order in range(11)]
    assert np.count_nonzero(mdp.available[30]) == 1


def test_inventory_rewards_follow_the_definition():
    mdp = inventory().mdp
    _, rewards = mdp.to_arrays()
    # stock 4, order 3, 5 sold, 2 left
    assert rewards[4, 3, 2] == pytest.approx(3.99 * 5 - 2.49 * 3 - 5.99 - 0.03 * 2)
    # nothing ordered, everything sold
    assert rewards[4, 0, 0] == pytest.approx(3.99 * 4)


def test_inventory_demand_is_a_discretised_normal():
    transitions, _ = inventory().mdp.to_arrays()
    density = np.exp(-0.5 * ((np.arange(31) - 7.5) / 5.0) ** 2)
    demand = density / density.sum()
    np.testing.assert_allclose(transitions[30, 0, ::-1], demand, rtol=1e-12)
    assert transitions[2, 1, 0] == pytest.approx(demand[3:].sum())


def test_a_domain_needs_its_true_model():
    with pytest.raises(ValueError, match="mdp must be an MDP, got NoneType"):
        Domain(name="nothing", mdp=None)
