"""Worlds, their logs and their truth, against definitions."""

from itertools import product

import numpy as np
import pytest

from surefoot import evaluate, read_transitions, solve
from surefoot.studies.zoo.catalogue import DEVELOPMENT, SPLITS, TEST, WORLDS, make_world
from surefoot.studies.zoo.cells import Cell, make_log
from surefoot.studies.zoo.garnets import dirichlet_garnet
from surefoot.studies.zoo.logs import (
    COLUMNS,
    expert_shares,
    fixed_tries,
    greedy_shares,
    learning,
    random_shares,
    trajectories,
)
from surefoot.studies.zoo.rewards import KINDS, RewardLaw
from surefoot.studies.zoo.truth import Choice, earned, earned_in, optimum, shares_of

SMALL = [
    name for name in WORLDS if "clinic" not in name and name not in ("cartpole", "taxi", "ward")
]


def small_garnet(rng, states=4, actions=2):
    return dirichlet_garnet(
        "g", states=states, actions=actions, successors=3, concentration=0.5, rng=rng
    )


def test_the_halves_are_about_as_large_and_share_nothing():
    halves = {split: {name for name in WORLDS if WORLDS[name].split == split} for split in SPLITS}
    assert set.union(*halves.values()) == set(WORLDS)
    assert abs(len(halves[DEVELOPMENT]) - len(halves[TEST])) <= 4
    kinds = {split: {make_world(name).law for name in halves[split]} for split in SPLITS}
    assert kinds[DEVELOPMENT] & kinds[TEST] == {RewardLaw()}


@pytest.mark.parametrize("name", SMALL)
def test_truth_agrees_with_the_solvers(name):
    world = make_world(name, seed=3)
    solution = solve(world.mdp)
    slack = 1e-6 * (1 + abs(solution.return_upper))
    assert solution.return_lower - slack <= optimum(world) <= solution.return_upper + slack
    shares = random_shares(world)
    found = evaluate(world.mdp, shares)
    assert found.return_lower - slack <= earned(world, shares).total <= found.return_upper + slack
    assert earned(world, greedy_shares(world, 0.0)).total == pytest.approx(optimum(world))
    assert optimum(world) >= earned(world, greedy_shares(world, 0.2)).total


@pytest.mark.parametrize("seed", range(5))
def test_open_states_play_their_worst(seed):
    world = small_garnet(np.random.default_rng(seed))
    shares = greedy_shares(world, 0.2)
    shares[[1, 3]] = 0.0
    totals, occupied = [], []
    for actions in product(range(2), repeat=2):
        filled = shares.copy()
        filled[[1, 3]] = np.eye(2)[list(actions)]
        totals.append(earned(world, filled).total)
        rows = np.einsum("sa,sat->st", filled, world.mdp.to_arrays().transitions)
        visits = np.linalg.solve(np.eye(4) - world.mdp.discount * rows.T, world.mdp.initial)
        occupied.append((1 - world.mdp.discount) * visits[[1, 3]].sum())
    found = earned(world, shares)
    assert found.total == pytest.approx(min(totals))
    assert found.open_share == pytest.approx(occupied[int(np.argmin(totals))])
    assert earned_in(world, shares, 300) == pytest.approx(found.total)


def test_returns_of_few_steps_are_sums_of_powers():
    world = make_world("survival")
    shares, (transitions, rewards) = random_shares(world), world.mdp.to_arrays()
    rows = np.einsum("sa,sat->st", shares, transitions)
    pay = np.einsum("sa,sat,sat->s", shares, transitions, rewards)
    expected = sum(
        world.mdp.discount**t * world.mdp.initial @ np.linalg.matrix_power(rows, t) @ pay
        for t in range(7)
    )
    assert earned_in(world, shares, 7) == pytest.approx(expected)


def test_a_policy_finds_its_states_by_their_labels():
    world = make_world("survival-strata")
    choice = Choice(
        states=("severity 3", "severity 0", "somewhere else", "severity 1"),
        actions=("treat", "wait"),
        policy=np.array([[0.25, 0.75], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]),
        known=np.array([True, True, True, False]),
    )
    shares = shares_of(world, choice)
    assert shares[[3, 13]].tolist() == [[0.75, 0.25]] * 2
    assert shares[[0, 10]].tolist() == [[0.0, 1.0]] * 2
    assert not shares[[1, 2, 11, 12]].any()


@pytest.mark.parametrize("policy", [[1], [[0.5, 0.5]], [[0.5, 0.0]]])
def test_a_policy_that_the_world_cannot_play_is_refused(policy):
    choice = Choice(states=(0,), actions=("left", "up"), policy=np.array(policy))
    with pytest.raises(ValueError, match="sum to 1"):
        shares_of(make_world("riverswim"), choice)


@pytest.mark.parametrize("kind", KINDS)
def test_rewards_have_their_mean_and_range(kind):
    law = RewardLaw(kind=kind, low=-3.0, high=4.0, chance=0.05)
    means = np.repeat([-0.5, 1.0], 200_000)
    drawn = law.draw(means, np.random.default_rng(0))
    for half in (slice(None, 200_000), slice(200_000, None)):
        spread = drawn[half].std() / 200_000**0.5
        assert abs(drawn[half].mean() - means[half][0]) <= 4 * spread
    if law.bounded:
        low, high = law.range(means)
        assert low - 1e-12 <= drawn.min()
        assert drawn.max() <= high + 1e-12
    else:
        assert law.range(means) is None


@pytest.mark.parametrize("name", ["survival", "machine", "cliff-walk", "garnet-1-catastrophe"])
def test_logs_earn_what_behaviour_earns(name):
    world = make_world(name)
    log = trajectories(world, greedy_shares(world, 0.3), 4000, np.random.default_rng(1))
    columns = log.columns
    discounted = columns["reward"] * world.mdp.discount ** columns["step"]
    returns = np.bincount(columns["episode"], discounted)
    spread = returns.std() / len(returns) ** 0.5
    assert abs(returns.mean() - log.earned(world, world.steps)) <= 4 * spread


@pytest.mark.parametrize("name", ["survival", "machine", "ward-small"])
def test_experts_earn_more_than_chance_and_have_habits(name):
    world = make_world(name)
    shares = expert_shares(world)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert np.all((shares > 0) == world.mdp.available)
    chance, best = earned(world, random_shares(world)).total, optimum(world)
    assert chance < earned(world, shares).total < best
    cell = Cell(name="x", world=name, behaviour="expert", size=20)
    log = make_log(cell, world, np.random.default_rng(0))
    np.testing.assert_array_equal(log.behaviour[0].shares, shares)


@pytest.mark.parametrize("name", ["survival", "frozen-lake-4x4", "riverswim", "accident-long"])
def test_episodes_hang_together_and_end_in_time(name):
    world = make_world(name)
    for log in (
        learning(world, 40, np.random.default_rng(2)),
        trajectories(world, random_shares(world), 40, np.random.default_rng(2)),
    ):
        columns = log.columns
        assert tuple(columns) == COLUMNS
        goes_on = columns["episode"][1:] == columns["episode"][:-1]
        assert np.all(columns["next_state"][:-1][goes_on] == columns["state"][1:][goes_on])
        assert np.all(np.diff(columns["step"])[goes_on] == 1)
        assert not columns["terminal"][:-1][goes_on].any()
        last = np.append(~goes_on, True)
        assert np.all(columns["terminal"][last] | (columns["step"][last] == world.steps - 1))
        assert sorted(set(columns["episode"].tolist())) == list(range(40))
        assert sum(stint.episodes for stint in log.behaviour) == 40


def test_fixed_tries_try_every_pair_equally_often():
    world = make_world("frozen-lake-4x4")
    columns = fixed_tries(world, 7, np.random.default_rng(0)).columns
    pairs, counts = np.unique(
        np.stack([columns["state"], columns["action"]]), axis=1, return_counts=True
    )
    assert set(counts.tolist()) == {7}
    assert pairs.shape[1] == 4 * np.count_nonzero(~world.terminal)


def test_random_worlds_take_a_seed():
    assert WORLDS["garnet-1"].random
    one, same, other = (make_world("garnet-1", seed).mdp.probability for seed in (0, 0, 1))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_the_clinic_is_the_published_one():
    world = make_world("clinic-0")
    assert optimum(world) == pytest.approx(0.446, abs=5e-4)
    behaviour = greedy_shares(world, 0.3)
    assert earned(world, behaviour).total == pytest.approx(-0.207, abs=5e-4)
    mixed = make_world("clinic-mixed")
    assert mixed.hidden
    assert optimum(mixed) == pytest.approx(
        0.8 * optimum(world) + 0.2 * optimum(make_world("clinic-1"))
    )


def test_logs_can_be_read():
    world = make_world("clinic-mixed")
    log = trajectories(world, greedy_shares(world, 0.3), 200, np.random.default_rng(0))
    counts = read_transitions(log.columns, episode="episode", step="step", terminal="terminal")
    assert counts.count.sum() == len(log.columns["state"])
    assert counts.starts.sum() == 200
    assert counts.is_terminal.sum() > 1


def test_bad_worlds_are_refused():
    with pytest.raises(ValueError, match=r"successors=9; it must lie in 1\.\.4"):
        dirichlet_garnet(
            "g", states=4, actions=1, successors=9, concentration=1.0,
            rng=np.random.default_rng(0),
        )  # fmt: skip
    with pytest.raises(ValueError, match="kind='poisson'; choose one of 'fixed'"):
        RewardLaw(kind="poisson")
