"""Questions to an expert: worth what the promise gains, and asked of rows that matter."""

from itertools import pairwise

import numpy as np
import pytest

import surefoot as sf
from surefoot.certificates.questions import expert_questions
from surefoot.certificates.row_doubt import row_doubt


def rng(seed):
    return np.random.default_rng(seed)


def asked(counts, policy, discount=0.9, **options):
    posterior, mdp = sf.DirichletPosterior(counts), counts.to_mdp(discount=discount, prior=1.0)
    made = sf.certify(policy, posterior, mdp, draws=4000, rng=rng(0), upper=False, **options)
    doubt = row_doubt(posterior, mdp, policy, rng(1), delta=0.05, draws=2000)
    return made, expert_questions(made, posterior, mdp, doubt, rng(2))


def counted(support):
    array = np.zeros((3, 1, 3), dtype=int)
    array[0, 0, :2] = 30, 10
    array[1, 0, :2] = 20, 20
    array[2, 0, 2] = 5
    return sf.Counts.from_arrays(array, rewards=[[1.0], [0.5], [0.0]], support=support)


def test_closing_all_rows_is_worth_what_declaring_their_successors_gives():
    support = np.ones((3, 1, 3))
    support[2, 0, :2] = 0
    made, found = asked(counted(support), np.zeros(3, dtype=int))
    every = found[0]
    assert (every.kind, every.row) == ("successors", None)
    support[:2, 0, 2] = 0
    closed, none = asked(counted(support), np.zeros(3, dtype=int))
    assert made.lower_bound + every.gain == pytest.approx(closed.lower_bound, abs=0.08)
    assert none == ()  # nothing is left to ask
    assert sum(one.gain for one in found[1:]) == pytest.approx(every.gain, rel=0.4)


def test_single_transitions_are_asked_about_where_a_row_has_several():
    array = np.zeros((4, 1, 4), dtype=int)
    array[0, 0, 0] = 30
    array[1:, 0, 1:] = 10 * np.eye(3, dtype=int)
    support = np.zeros((4, 1, 4))
    support[0] = 1
    support[1:, 0, 1:] = np.eye(3)
    counts = sf.Counts.from_arrays(array, rewards=[[1.0], [0.9], [0.0], [-1.0]], support=support)
    _, found = asked(counts, np.zeros(4, dtype=int))
    single = [one for one in found if one.kind == "transition"]
    assert single[0].successor == 3  # the worst place it could lead to
    assert all(one.gain >= other.gain for one, other in pairwise(found))


def test_the_worst_reward_is_asked_for_where_a_range_is_wide():
    log = {"state": ["a"] * 30 + ["b"] * 30, "action": ["go"] * 60,
           "next_state": ["b"] * 30 + ["a"] * 30, "reward": [1.0] * 60}  # fmt: skip
    counts = sf.read_transitions(log, reward_range=(-50.0, 1.0)).on_support("observed")
    made, found = asked(counts, np.zeros(2, dtype=int))
    assert {one.kind for one in found} == {"reward"}
    # A loss that was missed may lie in either row: one row by itself hardly helps.
    assert [one.row for one in found] == [None, 0, 1]
    assert max(one.gain for one in found[1:]) < 0.05 * found[0].gain
    # Without it both states pay 1 for ever.
    assert found[0].gain == pytest.approx(10.0 - made.lower_bound, rel=0.1)


def test_the_row_is_named_where_it_alone_was_hardly_tried():
    log = {"state": ["a"] * 3 + ["b"] * 300, "action": ["go"] * 303,
           "next_state": ["b"] * 3 + ["a"] * 300, "reward": [1.0] * 303}  # fmt: skip
    counts = sf.read_transitions(log, reward_range=(-50.0, 1.0)).on_support("observed")
    made, found = asked(counts, np.zeros(2, dtype=int))
    gain = {one.row: one.gain for one in found}
    assert gain.keys() == {None, 0}
    assert 0.8 * gain[None] < gain[0] < gain[None] <= 10.0 - made.lower_bound + 1e-6
