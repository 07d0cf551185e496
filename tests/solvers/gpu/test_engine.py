"""Draws and returns on a device, against the posterior, the cores and equations solved by hand."""

from dataclasses import replace
from threading import Event
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.heavy_rows import heavy_counts

from surefoot import (
    MDP,
    Counts,
    DirichletPosterior,
    LearnedPosterior,
    certify,
    compare,
    garnet,
    machine_replacement,
    optimize,
    read_transitions,
    solve,
    verify,
)
from surefoot.model.policies import check_policy
from surefoot.posterior.protocol import Posterior
from surefoot.posterior.rows import RowLayout, SomeRows
from surefoot.solvers.evaluation.draws import Draws
from surefoot.solvers.evaluation.returns import policy_returns
from surefoot.solvers.evaluation.rewards import rewards_of
from surefoot.solvers.gpu import batches as batches_module
from surefoot.solvers.gpu import recheck
from surefoot.solvers.gpu.arrays import NUMPY
from surefoot.solvers.gpu.batches import DRAWING, Batches, DrawnTile
from surefoot.solvers.gpu.device import Device, doubles
from surefoot.solvers.gpu.engine import DeviceEngine, of_all, of_policy
from surefoot.solvers.gpu.philox import NAME, key_words
from surefoot.solvers.gpu.sweep_pallas import best_values
from surefoot.solvers.gpu.sweeps import SPREADING, SWEEPING, sweep
from surefoot.solvers.gpu.tiles import lay_out

SEED = 5


def small() -> tuple[Posterior, MDP]:
    counts = garnet(6, 2, 3, discount=0.8, rng=np.random.default_rng(0)).simulate(
        8, np.random.default_rng(1)
    )
    return DirichletPosterior(counts, 0.7), counts.to_mdp(discount=0.8, prior=0.7)


def machines(**reading: Any) -> Counts:
    log = machine_replacement().log(episodes=30, rng=np.random.default_rng(0))
    return read_transitions(log, episode="episode", step="step", **reading)


def with_rewards(model: str) -> tuple[Posterior, MDP]:
    """A log whose rewards scatter."""
    rng = np.random.default_rng(2)
    n = 400
    state, action = rng.integers(0, 3, n), rng.integers(0, 2, n)
    following = (state + rng.integers(0, 2, n)) % 3
    log = {
        "state": state, "action": action, "next_state": following,
        "reward": rng.random(n) * (1 + state),
    }  # fmt: skip
    counts = read_transitions(log, rewards=model).on_support("observed")
    posterior = DirichletPosterior(counts)
    return posterior, counts.to_mdp(discount=0.7, prior=1.0)


def made(posterior: Posterior, mdp: MDP, n: int) -> tuple[Batches, Any]:
    """Draws of all rows, by NumPy."""
    rewards = rewards_of(mdp, posterior, objective="max")
    draws = Draws.take(posterior, mdp, rewards, n, np.random.default_rng(SEED))
    tiling = lay_out(mdp.state_start, mdp.row_start, mdp.successor, None)
    found = Batches.of(draws, tiling, np.arange(mdp.num_rows), np.arange(mdp.num_entries))
    keys = tuple(key_words(key) for key in found.keys)
    formulas = (found.source.formula, found.rewards.formula)
    with np.errstate(all="ignore"):
        numbers = np.arange(n, dtype=np.uint32)
        tiles = batches_module._draw(
            NUMPY, formulas, keys, found.numbers, found.shared(0, n), numbers
        )
    return found, tiles


def by_entry(batches: Batches, tiles: Any) -> Any:
    """Return ``(n, E)`` probabilities and ``(n, R)`` expected rewards."""
    mdp, n = batches.draws.mdp, batches.draws.count
    chance, gain = np.empty((n, mdp.num_entries)), np.empty((n, mdp.num_rows))
    for tile, drawn in zip(batches.tiling.tiles, tiles, strict=True):
        chance[:, tile.entry[tile.entry >= 0]] = drawn.chance[tile.entry >= 0].T
        assert np.all(drawn.chance[tile.entry < 0] == 0.0)
        gain[:, tile.row[tile.row >= 0]] = drawn.gain[tile.row >= 0].T
    return chance, gain


@pytest.mark.parametrize("kind", ["dirichlet", "learned", "heavy"])
def test_draws_have_the_mean_of_the_posterior(kind: str) -> None:
    counts = heavy_counts(12, 6) if kind == "heavy" else machines()
    posterior: Any = LearnedPosterior(counts)
    mdp = posterior.to_mdp(discount=0.9)
    if kind == "dirichlet":
        posterior = DirichletPosterior(counts, 0.3)
        mdp = posterior.counts.to_mdp(discount=0.9, prior=0.3)
    n = 20_000
    chance, _ = by_entry(*made(posterior, mdp, n))
    np.testing.assert_allclose(np.add.reduceat(chance, mdp.row_start[:-1], axis=1), 1.0, rtol=1e-13)
    error = chance.std(axis=0) / np.sqrt(n)
    distance = np.abs(chance.mean(axis=0) - posterior.mean())
    rare = posterior.mean() < 1e-4  # some land there once in 20,000 draws: no error to be seen
    assert np.all(distance <= np.where(rare, 1e-4, 5.0 * error + 1e-12))
    cores = posterior.sample(n, np.random.default_rng(9))
    some = np.flatnonzero(error > 0)[::7]
    worst = min(stats.ks_2samp(chance[:, e], cores[:, e]).pvalue for e in some)
    assert worst > 1e-3 / len(some)


@pytest.mark.parametrize("model", ["normal", "bounded"])
def test_uncertain_rewards_have_the_law_of_the_cores(model: str) -> None:
    posterior, mdp = with_rewards(model)
    rewards = rewards_of(mdp, posterior, objective="max")
    assert rewards.uncertain.any()
    n = 5000
    _, gain = by_entry(*made(posterior, mdp, n))
    key = (np.uint64(1), np.uint64(2))
    reward = rewards.block(key, 0, n, np.arange(mdp.num_entries))
    chance = posterior.sample(n, np.random.default_rng(3))
    cores = np.add.reduceat(chance * reward, mdp.row_start[:-1], axis=1)
    worst = min(stats.ks_2samp(gain[:, r], cores[:, r]).pvalue for r in range(mdp.num_rows))
    assert worst > 1e-3 / mdp.num_rows


def solved(mdp: MDP, policy: Any, chance: Any, gain: Any) -> Any:
    """Return the return of a policy in drawn models, from equations."""
    found = []
    for p, g in zip(chance, gain, strict=True):
        matrix, right = np.eye(mdp.num_states), np.zeros(mdp.num_states)
        for s in range(mdp.num_states):
            for m in range(int(policy.start[s]), int(policy.start[s + 1])):
                row, share = int(policy.rows[m]), policy.share[m]
                entries = slice(mdp.row_start[row], mdp.row_start[row + 1])
                np.subtract.at(matrix[s], mdp.successor[entries], mdp.discount * share * p[entries])
                right[s] += share * g[row]
        found.append(mdp.initial @ np.linalg.solve(matrix, right) / mdp.initial.sum())
    return np.array(found)


@pytest.mark.parametrize("kind", ["pure", "mixed", "learned", "normal"])
def test_brackets_hold_the_returns_of_the_same_draws(kind: str, device: Device) -> None:
    posterior, mdp = small()
    if kind == "learned":
        posterior = LearnedPosterior(posterior.counts)
        mdp = posterior.to_mdp(discount=0.8)
    elif kind == "normal":
        posterior, mdp = with_rewards("normal")
    given: Any = solve(mdp).policy
    if kind == "mixed":
        given = np.full((mdp.num_states, mdp.num_actions), 0.5)
    policy = check_policy(mdp, given)
    n = 40
    batches, tiles = made(posterior, mdp, n)
    ends = DeviceEngine(device=device).policy_ends(batches.draws, policy, 1e-11)
    exact = solved(mdp, policy, *by_entry(batches, tiles))
    assert np.all(ends[:, 0] <= exact)
    assert np.all(exact <= ends[:, 1])
    np.testing.assert_allclose(ends, np.stack([exact, exact], axis=1), rtol=1e-9)


def test_best_returns_bracket_the_best_policy(device: Device) -> None:
    posterior, mdp = small()
    n = 20
    batches, tiles = made(posterior, mdp, n)
    engine = DeviceEngine(device=device)
    ends = engine.best_ends(batches.draws, mdp.state_start[:-1], 1e-11)
    chance, _ = by_entry(batches, tiles)
    for i in range(n):
        best = solve(replace(mdp, probability=chance[i]), tolerance=1e-11)
        assert ends[i, 0] <= best.return_upper
        assert best.return_lower <= ends[i, 1]
        np.testing.assert_allclose(ends[i], best.return_lower, rtol=1e-9)


def test_a_part_of_draws_and_of_rows_is_the_same_draws(device: Device) -> None:
    posterior, mdp = small()
    batches, _ = made(posterior, mdp, 40)
    policy = check_policy(mdp, solve(mdp).policy)
    engine = DeviceEngine(device=device)
    whole = engine.policy_ends(batches.draws, policy, 1e-9)
    part = engine.policy_ends(batches.draws.part(24, 40), policy, 1e-9)
    np.testing.assert_allclose(part, whole[24:], rtol=1e-9)
    rows = np.sort(policy.rows.astype(np.int64))
    some = SomeRows(posterior, RowLayout.of(mdp), rows)
    tile = lay_out(np.arange(7), some.layout.row_start, some.layout.successor, None)
    alone = Batches.of(
        replace(batches.draws, batch=replace(batches.draws.batch, posterior=some)), tile,
        np.arange(6), np.arange(some.num_entries),
    )  # fmt: skip
    mine = batches.again(3)[0].chance[:, rows % 2, np.arange(6), 0]
    np.testing.assert_array_equal(alone.again(3)[0].chance[:, 0, :, 0], mine)


def test_a_device_that_errs_is_not_believed(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    posterior, mdp = small()
    batches, _ = made(posterior, mdp, 40)
    policy = check_policy(mdp, solve(mdp).policy)
    honest = batches.make

    def wrong(self: Batches, put: Any, numbers: Any, first: int, last: int) -> Any:
        tiles = honest.__func__(self, put, numbers, first, last)  # type: ignore[attr-defined]
        return tuple(tile._replace(gain=tile.gain * (1 + 1e-6)) for tile in tiles)

    monkeypatch.setattr(Batches, "make", wrong)
    with pytest.raises(RuntimeError, match="the device and the CPU disagree about draw"):
        DeviceEngine(device=device).policy_ends(batches.draws, policy, 1e-9)
    DeviceEngine(device=device, checked=0).policy_ends(batches.draws, policy, 1e-9)
    assert recheck.AGREEMENT == 1e-9


def test_promises_on_a_device(gpu: Device) -> None:
    posterior, mdp = small()
    result = optimize(
        posterior, mdp, draws=300, rng=np.random.default_rng(1), device="gpu"
    )  # fmt: skip
    certificate = result.certificate
    assert certificate.stream == NAME
    assert certificate.has("on_device")
    assert certificate.has("device_search")
    assert certificate.lower_bound < certificate.upper_bound
    assert {c.name.split(",")[0] for c in result.candidates} == {"nominal", "cautious", "robust"}
    again = certify(
        result.policy, posterior, mdp, draws=300, rng=np.random.default_rng(2), device="cpu"
    )
    assert again.stream == "philox 1"
    assert again.lower_bound == pytest.approx(certificate.lower_bound, rel=0.05)
    for where in ("cpu", "gpu"):
        assert verify(
            certificate, posterior, mdp, rng=np.random.default_rng(3), device=where
        ).stands
    other = (np.asarray(result.policy) + 1) % 2
    one, two = (
        compare(
            result.policy, other, posterior, mdp, draws=300, rng=np.random.default_rng(4),
            device=where,
        )
        for where in ("cpu", "gpu")
    )  # fmt: skip
    assert one.mean_difference == pytest.approx(two.mean_difference, rel=0.05)


def test_large_brackets_are_the_cores_brackets(device: Device) -> None:
    """The same law of returns, from another random stream."""
    posterior, mdp = small()
    rewards = rewards_of(mdp, posterior, objective="max")
    policy = check_policy(mdp, solve(mdp).policy)
    one, other = (
        policy_returns(
            posterior, mdp, policy, 2000, np.random.default_rng(1), rewards=rewards, **engine
        ).lower
        for engine in ({}, {"engine": DeviceEngine(device=device)})
    )
    assert stats.ks_2samp(one, other).pvalue > 1e-3


@pytest.mark.parametrize(("rows", "draws"), [(3, 48), (1, 16)])
def test_the_kernel_of_best_values_is_the_formula(rows: int, draws: int) -> None:
    import jax.numpy as jnp

    rng = np.random.default_rng(3)
    size = (4, rows, 7, draws)
    gain = np.where(rng.random(size[1:]) < 0.2, -np.inf, rng.standard_normal(size[1:]))
    tile = DrawnTile(rng.random(size), gain, np.ones(draws))
    target = rng.integers(0, 9, size[:3]).astype(np.int32)
    v = rng.standard_normal((9, draws))
    wanted = sweep(NUMPY, (tile,), [(target, np.ones(size[1:3]))], 0.9, v, best=True)
    with doubles():
        given = (jnp.asarray(one) for one in (tile.chance, gain, target, np.float64(0.9), v))
        found = best_values(*given, interpret=True)
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-13, atol=1e-14)
    if rows == 1:  # the only row is the best one: the kernel serves policies too
        share = np.ones(size[1:3])
        mine = sweep(NUMPY, (tile,), [(target, share)], 0.9, v, best=False)
        np.testing.assert_array_equal(mine, wanted)


def test_what_was_prepared_is_not_compiled_again(device: Device) -> None:
    posterior, mdp = small()
    rewards = rewards_of(mdp, posterior, objective="max")
    draws = Draws.take(posterior, mdp, rewards, 40, np.random.default_rng(SEED))
    engine = DeviceEngine(device=device)
    policy = check_policy(mdp, np.zeros(mdp.num_states, dtype=np.int64))
    learned = Event()
    programs = list(engine.prepare(of_policy(draws, policy), of_all(draws), learned))
    learned.set()
    for program in programs:
        program()
    known = [len(one._made) for one in (DRAWING, SWEEPING, SPREADING)]
    other = check_policy(mdp, np.ones(mdp.num_states, dtype=np.int64))
    engine.policy_ends(draws, other, 1e-6)
    engine.best_ends(draws, mdp.state_start[:-1], 1e-6)
    engine.spreads(draws, np.zeros(mdp.num_states))
    assert known == [len(one._made) for one in (DRAWING, SWEEPING, SPREADING)]
