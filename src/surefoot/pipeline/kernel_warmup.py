"""Compile kernels in a second process while the first one compiles others.

Only the first run on a machine does this. Both processes share the cache of compiled kernels; the
first process needs nominal solves and sampling first, so this one starts with robust solves.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from surefoot._compile import cache_directory

if TYPE_CHECKING:
    from surefoot.model.mdp import MDP


def is_cold() -> bool:
    """Return whether no kernel has been compiled on this machine yet."""
    return not any(cache_directory().rglob("*.nbc"))  # Numba's files of compiled code


@contextmanager
def warming(cores: int | None = None) -> Iterator[None]:
    """Compile kernels in a second process during the block, if none are compiled yet."""
    if not is_cold() or (cores or os.cpu_count() or 1) < 2:
        yield
        return
    helper = subprocess.Popen(
        [sys.executable, "-m", "surefoot.pipeline.kernel_warmup"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        helper.kill()  # safe: each file of the cache is written atomically
        helper.wait()


def compile_others() -> None:
    """Run the kernels of robust solves, certificates and search on a small problem."""
    import numpy as np

    from surefoot.calibration.credible import credible_set
    from surefoot.certificates.limit import coupled, upper_bound
    from surefoot.certificates.local_search import climb, local_search
    from surefoot.certificates.models import draw_models
    from surefoot.certificates.var_operator import fixed_point
    from surefoot.domains.machine import machine_replacement
    from surefoot.model.policies import check_policy
    from surefoot.posterior.dirichlet import DirichletPosterior
    from surefoot.solvers.evaluation.returns import policy_returns
    from surefoot.solvers.evaluation.rewards import rewards_of

    _compile_robust_solves(machine_replacement().mdp)
    rng = np.random.default_rng(0)
    counts = machine_replacement().simulate(5, rng)
    posterior = DirichletPosterior(counts)
    mdp = counts.to_mdp(discount=0.95, prior=1.0)
    rewards = rewards_of(mdp, posterior, objective="max")
    rows = check_policy(mdp, np.zeros(mdp.num_states, dtype=np.int64))
    batch = draw_models(posterior, mdp, rewards, np.arange(mdp.num_rows), 200, rng)
    choice = rows.rows.astype(np.int64)
    policy_returns(posterior, mdp, rows, 200, rng, rewards=rewards)
    ranks = np.full(mdp.num_states, batch.rank(0.05), dtype=np.int64)
    fixed_point(batch, ranks, None, 1e-3, 10)
    climb(batch, choice, 0.05, 1.0)
    local_search(batch, choice, 0.05)
    upper_bound(posterior, mdp, rewards, delta=0.05, eta=0.1, draws=200, rng=rng, start=choice)
    alike = coupled(posterior, mdp, rewards, choice)
    if alike is not None:
        alike.sample(16, rng)
    credible_set(posterior, mdp, delta=0.05, union="states", rng=rng)


def _compile_robust_solves(mdp: "MDP") -> None:
    """Solve with L1 balls by all methods that find candidates."""
    from surefoot.ambiguity.sets import AmbiguitySet
    from surefoot.solvers.solver import solve

    ambiguity = AmbiguitySet.from_arrays(mdp, norm="l1", budget=0.1)
    solve(mdp, ambiguity)
    solve(mdp, ambiguity, algorithm="policy_iteration")


if __name__ == "__main__":
    compile_others()
