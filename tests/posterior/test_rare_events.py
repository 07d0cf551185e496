"""What a try shows that its row never showed, counted over all rows of an action."""

import numpy as np
import pytest

from surefoot import LearnedPosterior, read_transitions
from surefoot.posterior.rare_events import BEFORE, RareEvents, _lacking_by_tries


def road(tries, accidents):
    """Counts of a road of which every place leads on or stays; few rows showed the ditch."""
    places, ditch = 40, 40
    moves = [
        (place, to)
        for place in range(places)
        for to, times in ((place, tries // 5), ((place + 1) % places, tries - tries // 5))
        for _ in range(times)
    ]
    moves += [(place, ditch) for place in range(accidents)]
    state, successor = np.array(moves).T
    return read_transitions(
        {"state": state, "action": 0 * state, "reward": 0.0 * state, "next_state": successor}
    )


def unseen_mass(posterior):
    """How many of as many tries as there were are expected to show something new."""
    missing = np.where(posterior.counts.count == 0, posterior.mean(), 0.0)
    by_row = np.add.reduceat(missing, posterior.row_start[:-1])
    visits = np.add.reduceat(posterior.counts.count, posterior.row_start[:-1])
    return float((by_row * visits).sum())


@pytest.mark.parametrize("accidents", [1, 3, 6])
def test_rare_accidents_are_expected_again(accidents):
    """Forty rows of a hundred tries: the laws say two successors, the count says what follows."""
    posterior = LearnedPosterior(road(100, accidents))
    rare = posterior.rare
    assert rare.by_laws[0] < accidents + BEFORE
    # Where each row has its own two, the new ones are those of the count, and one before it.
    assert unseen_mass(posterior) == pytest.approx(accidents + BEFORE, rel=0.05)


@pytest.mark.parametrize("accidents", [3, 6])
def test_accidents_are_expected_in_rows_that_have_not_shown_them(accidents):
    """By Robbins: those that showed it once, over the tries of rows that did not, and one more."""
    posterior = LearnedPosterior(road(100, accidents))
    rows, tries = 40, 100
    quiet = rows - accidents
    total = BEFORE + accidents
    visits = rows * tries + accidents
    hazard = accidents / (quiet * tries + tries + 1)
    expected = np.where(
        np.arange(rows) < accidents, BEFORE / total, (BEFORE + hazard * visits) / total
    )
    np.testing.assert_allclose(posterior.rare.open[:rows], expected)
    ditch = np.flatnonzero(posterior.counts.successor == rows)
    by_row = np.zeros(posterior.layout.num_rows)
    by_row[posterior.layout.entry_row[ditch]] = posterior.mean()[ditch]
    if accidents == 6:  # three other rows make it a place to expect
        assert by_row[accidents:rows].min() > 0.8 * hazard


def test_nothing_is_added_where_the_laws_expect_as_much():
    rare = RareEvents(tries=np.array([50.0, 0.0]), new=np.array([2.0, 0.0]),
                      by_laws=np.array([3.5, 0.0]), open=np.array([1.0, 2.0]))  # fmt: skip
    np.testing.assert_array_equal(rare.draw(np.full((3, 2), 0.9)), 0.0)
    np.testing.assert_array_equal(rare.row_means(np.array([0, 1])), 0.0)


def test_draws_have_their_mean_and_stay_below_one():
    rare = RareEvents(tries=np.array([1.0, 200.0]), new=np.array([1.0, 4.0]),
                      by_laws=np.array([0.3, 2.0]), open=np.array([1.0, 0.2, 3.0]))  # fmt: skip
    drawn = rare.draw(np.random.default_rng(0).random((200_000, 2)))
    assert drawn.min() >= 0.0
    assert drawn.max() < 1.0
    action = np.array([0, 1, 1])
    added = 1.0 - (1.0 - drawn[:, action]) ** rare.open
    np.testing.assert_allclose(added.mean(axis=0), rare.row_means(action), rtol=0.01)


def test_tries_that_a_row_repeated_count_less():
    """Successors seen twice show that the row is nearly known (Chao and Jost)."""
    made = {
        twice: RareEvents.count(
            count=np.array([1.0] * 4 + [2.0] * twice), row_start=np.array([0, 4 + twice]),
            action=np.array([0]), num_actions=1, missing=np.array([0.0]),
            patterns=(np.arange(4 + twice),),
        ).new[0]
        for twice in (0, 4)
    }  # fmt: skip
    assert made[0] == 4.0
    n = 12
    assert made[4] == pytest.approx(4 * (n - 1) * 4 / ((n - 1) * 4 + 2 * 4))


def test_rows_tried_often_have_less_left_to_show():
    """A hundred rows of two tries each hide a lot, one of nine thousand hardly anything."""
    rng = np.random.default_rng(0)
    rare_rows = [(s, int(to)) for s in range(1, 101) for to in rng.choice(100, 2, replace=False)]
    often = [(0, to) for to in (1, 2, 3) for _ in range(3000)]
    state, successor = np.array(rare_rows + often).T
    counts = read_transitions(
        {"state": state, "action": 0 * state, "reward": 0.0 * state, "next_state": successor}
    )
    posterior = LearnedPosterior(counts)
    missing = np.where(posterior.counts.count == 0, posterior.mean(), 0.0)
    by_row = np.add.reduceat(missing, posterior.row_start[:-1])
    assert by_row[0] < 3 / 9000
    assert by_row[1:101].mean() > 0.3


def test_what_the_laws_lack_is_shared_out_by_tries():
    """By the definition: what was new less what the laws expect, among rows of as many tries."""
    action, visits = np.array([0, 0, 0, 0, 1]), np.array([2.0, 3.0, 64.0, 100.0, 8.0])
    new, by_laws = np.array([2.0, 1.0, 1.0, 0.0, 0.0]), np.array([0.5, 0.5, 0.2, 0.9, 4.0])
    found = _lacking_by_tries(action, visits, new, by_laws)
    tries = visits[:4].sum()
    few, many = 3.0 + BEFORE * 5 / tries - 1.0, 1.0 + BEFORE * 164 / tries - 1.1
    expected = np.array([few / 5, few / 5, many / 164, many / 164]) / ((few + many) / tries)
    np.testing.assert_allclose(found[:4], expected)
    assert found[4] == 1.0  # the laws expect more than was seen: there is nothing to share out
