"""CONTRIBUTING, "A new domain", followed literally: a coin that pays while it shows heads."""

import json

import numpy as np
import pytest

import surefoot as sf
from surefoot.cli import main
from surefoot.domains.catalogue import DOMAINS, ListedDomain, make_domain


def coin(*, discount: float = 0.9) -> sf.Domain:
    """Return a coin that is kept or flipped; heads pay 1."""
    keep, flip = [[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5], [0.5, 0.5]]
    transitions = np.stack([keep, flip], axis=1)
    mdp = sf.MDP.from_arrays(transitions, [[1.0, 1.0], [0.0, 0.0]], discount=discount)
    return sf.Domain(name="coin", mdp=mdp)


@pytest.fixture(autouse=True)
def listed(monkeypatch):
    monkeypatch.setitem(DOMAINS, "coin", ListedDomain(coin, "keep heads, flip tails"))


def test_its_nominal_return_is_the_one_worked_out_by_hand():
    # Heads: 1 / (1 - 0.9) = 10. Tails: v = 0.9 (10 + v) / 2, so v = 4.5 / 0.55.
    solution = sf.solve(make_domain("coin").mdp)
    assert solution.policy.tolist()[1] == 1
    np.testing.assert_allclose(solution.value, [10, 4.5 / 0.55], atol=1e-5)


def test_the_command_line_lists_it(capsys):
    assert main(["domains", "list", "--json"]) == 0
    assert "coin" in {fact["name"] for fact in json.loads(capsys.readouterr().out)}


def test_data_can_be_taken_from_it():
    domain = make_domain("coin")
    assert domain.simulate(3, np.random.default_rng(0)).visits.tolist() == [3, 3, 3, 3]
    log = domain.log(2, np.random.default_rng(0), steps=5)
    assert sf.read_transitions(log).count.sum() == 10
