"""Choosing a policy on a GPU: nominal, robust and cautious candidates.

Local search and coordinate ascent hold a batch in memory and change one state at a time, which
suits CPU cores. Here candidates come from whole solves, a few hundred sweeps each, and are compared
by their percentile on the same draws, none of which is used to certify.
"""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import replace
from functools import partial
from threading import Event
from typing import Any

import numpy as np

from surefoot._order_statistics import marginal_rank
from surefoot.ambiguity.sets import AmbiguitySet
from surefoot.certificates.clock import SearchClock
from surefoot.certificates.models import Ints, percentile, restricted
from surefoot.certificates.search import KEPT, Candidate, OnCandidate
from surefoot.certificates.usual import caution_at, ends_by_counts, keep_usual
from surefoot.model.mdp import MDP
from surefoot.model.policies import check_policy
from surefoot.posterior.protocol import Posterior
from surefoot.posterior.rows import RowLayout, SomeRows
from surefoot.solvers.dual_kernels import L1, NOMINAL
from surefoot.solvers.evaluation.draws import Draws
from surefoot.solvers.evaluation.returns import policy_returns
from surefoot.solvers.evaluation.rewards import Rewards, rewards_of
from surefoot.solvers.gpu.choice import OnDevice
from surefoot.solvers.gpu.device import Device
from surefoot.solvers.gpu.engine import DeviceEngine, of_all, of_policy
from surefoot.solvers.gpu.robust_work import prepare
from surefoot.solvers.gpu.shared import SharedDeviceEngine
from surefoot.solvers.gpu.solves import DeviceSolver
from surefoot.solvers.solver import evaluate
from surefoot.solvers.steps import largest_value

CHOICE_DRAWS = 1000
"""Draws that candidates are compared on if the caller gives no number; the same for all."""
CAUTION = (0.25, 0.5)
"""Standard deviations of a row's value that cautious candidates subtract from its reward."""
ROBUST_SCALES = (0.1, 0.25, 0.5)
"""Budgets of the robust candidates, in mean posterior distances of their rows."""
SPREAD_DRAWS = 256
"""Draws from which the uncertainty of rows is estimated."""
ALONGSIDE = 8
"""How many programs are compiled at the same time."""


def search_on_device(
    posterior: Posterior, mdp: MDP, rewards: Rewards, rows: Ints, n: int,
    rng: np.random.Generator, engine: OnDevice, delta: float, clock: SearchClock,
    progress: OnCandidate | None, visits: Ints | None = None,
) -> tuple[Candidate, ...]:  # fmt: skip
    """Return all candidates with the best one selected; among equals, the first.

    ``visits``: as for `surefoot.certificates.search.search`.
    """
    layout = RowLayout.of(mdp)
    entries = layout.entries_of(rows)
    if len(rows) < mdp.num_rows:
        posterior = SomeRows(posterior, layout, rows)
    own = rewards.of(entries)
    part = restricted(mdp, rows, posterior.mean(), own)
    engine = replace(engine, checked=0)  # no promise rests on the draws that choose
    spread_rng, compare_rng = rng.spawn(2)
    pool: list[Candidate] = []
    known: dict[bytes, float] = {}

    def consider(name: str, policy: Ints, nominal: float) -> None:
        if policy.tobytes() not in known:
            returns = policy_returns(
                posterior, part, check_policy(part, policy), n, deepcopy(compare_rng), rewards=own,
                engine=engine,
            )  # fmt: skip
            rank = max(1, marginal_rank(n, delta))
            known[policy.tobytes()] = percentile(returns.lower, rank)
        reached = known[policy.tobytes()]
        pool.append(
            Candidate(
                name=name, percentile=reached, nominal_return=nominal, selected=False, policy=policy
            )
        )
        if progress is not None:
            progress(name, max(one.percentile for one in pool))

    given = posterior, part, own, spread_rng
    proposals: Iterable[tuple[str, Ints, float]]
    if isinstance(engine, SharedDeviceEngine):
        proposals = engine.on_one(_all_proposals, *given)
    else:
        proposals = _proposals(*given, engine)
    for name, policy, nominal in proposals:
        consider(name, policy, nominal)
        if clock():
            break
    best = max(range(len(pool)), key=lambda k: pool[k].percentile)
    chosen = pool[best].policy
    if visits is not None and isinstance(chosen, np.ndarray):
        taken = check_policy(part, chosen).rows.astype(np.int64)
        ends = ends_by_counts(part, visits[rows], caution_at(delta))
        usual = keep_usual(part, taken, visits[rows], ends)
        if not np.array_equal(usual, taken):
            action = part.row_action[usual]
            tolerance = 1e-6 * max(largest_value(part), 1e-300)
            nominal = evaluate(part, action, tolerance=tolerance).return_lower
            consider(f"{pool[best].name}{KEPT}", action, nominal)
            best = len(pool) - 1
    return tuple(replace(one, selected=k == best) for k, one in enumerate(pool))


def _proposals(
    posterior: Posterior, mdp: MDP, rewards: Rewards, rng: np.random.Generator,
    engine: DeviceEngine,
) -> Iterator[tuple[str, Ints, float]]:  # fmt: skip
    """Yield names, policies and their returns in the mean model, the nominal one first."""
    tolerance = 1e-6 * max(largest_value(mdp), 1e-300)
    plain = DeviceSolver(engine.device, mdp, None)
    nominal = plain.solve(tolerance)
    draws = Draws.take(posterior, mdp, rewards, SPREAD_DRAWS, rng)
    with ThreadPoolExecutor(1) as pool:  # compiles while other candidates are compared
        spreads = partial(engine.spreads, draws, nominal.value)
        found_spreads = pool.submit(spreads).result if engine.holds_twice(mdp) else spreads
        yield "nominal", nominal.policy, nominal.mean_return
        distance, scatter = found_spreads()
        ball = AmbiguitySet(mdp=mdp, norm="l1", budget=np.minimum(2.0, distance))
        later = pool.submit(_robust, engine.device, mdp, ball, 100 * tolerance)
        for share in CAUTION:
            policy = plain.solve(100 * tolerance, less=share * scatter).policy
            name = f"cautious, {share:g} standard deviations off"
            yield name, policy, plain.evaluate(policy, tolerance)
        found = later.result()
    for scale, policy in zip(ROBUST_SCALES, found, strict=True):
        name = f"robust, budget {scale:g} x mean distance"
        yield name, policy, plain.evaluate(policy, tolerance)


def _all_proposals(*given: Any) -> list[tuple[str, Ints, float]]:
    """Return all proposals as a list; a worker of a cluster runs this."""
    return list(_proposals(*given))


def _robust(device: Device, mdp: MDP, ball: AmbiguitySet, tolerance: float) -> list[Ints]:
    """Return the robust policies of all budgets."""
    solver = DeviceSolver(device, mdp, ball)
    return [solver.solve(tolerance, scale=scale).policy for scale in ROBUST_SCALES]


def rehearse(
    posterior: Posterior, mdp: MDP, engine: DeviceEngine, n: int | None, learned: Event
) -> None:
    """Compile, in parallel, the programs of a search and a certificate on ``n`` draws.

    That takes seconds and needs only shapes, so a thread can do it while the numbers of a model are
    still being computed: all but the programs that draw, which wait until ``learned`` is set. The
    program that is needed first, for the best policy of the model, is compiled first.
    """
    rewards = rewards_of(mdp, posterior, objective="max")
    draws = Draws.take(posterior, mdp, rewards, n or CHOICE_DRAWS, np.random.default_rng(0))
    first = check_policy(mdp, mdp.row_action[mdp.state_start[:-1]])
    everything = of_all(draws)
    with ThreadPoolExecutor(ALONGSIDE) as pool:
        for family in (NOMINAL, L1):
            pool.submit(
                prepare, engine.device, everything.tiling, family, per_entry=mdp.reward_per_entry
            )
        for program in engine.prepare(of_policy(draws, first), everything, learned):
            pool.submit(program)
