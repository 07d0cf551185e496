"""The GPU beside the cores: certificates of twelve models, and what ``auto`` chooses.

``python -m benchmarks.gpu`` certifies the same policy on both, compilation included, as somebody
meets it who does it once. Where there is no numba, the figures of the cores come from a file that
``--save`` wrote on a machine that has it (``--cores benchmarks/gpu_cores.json``: 16 cores beside an
H200). ``--rates`` measures the parts instead
(`benchmarks.gpu_rates`).
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

from surefoot._compile import COMPILES
from surefoot.certificates.certificate import Certificate
from surefoot.certificates.certification import certify
from surefoot.data.counts import Counts
from surefoot.model.mdp import MDP
from surefoot.posterior.dirichlet import DirichletPosterior
from surefoot.solvers.gpu.choice import choose_engine

SIZES = (
    (100, 8), (300, 8), (1000, 8), (2000, 8), (3000, 8), (10_000, 8), (30_000, 8),
    (100, 30), (300, 30), (1000, 30), (3000, 30), (1000, 100),
)  # fmt: skip
"""States and successors of a row; five actions each."""
ACTIONS, TRIES, DISCOUNT, DRAWS = 5, 20, 0.95, 600
PATIENCE = 300.0
"""Seconds of the cores after which larger models are left out."""


def made(states: int, length: int, seed: int = 0) -> tuple[DirichletPosterior, MDP]:
    """Return a posterior of random counts, and the model of its mean."""
    rng = np.random.default_rng(seed)
    rows = states * ACTIONS
    successor = np.argsort(rng.random((rows, min(states, 4 * length))), axis=1)[:, :length]
    successor = successor * max(1, states // (4 * length)) + rng.integers(0, states, (rows, 1))
    successor = np.sort(successor % states, axis=1)
    share = rng.dirichlet(np.ones(length), rows)
    mdp = MDP(
        state_start=ACTIONS * np.arange(states + 1),
        row_action=np.tile(np.arange(ACTIONS), states),
        row_start=length * np.arange(rows + 1),
        successor=successor.ravel().astype(np.int32),
        probability=share.ravel(),
        reward=np.repeat(rng.random(rows), length),
        discount=DISCOUNT,
        initial=np.full(states, 1.0 / states),
        num_actions=ACTIONS,
        reward_per_entry=True,
    )
    counts = Counts.on_rows_of(mdp, rng.multinomial(TRIES, share).ravel())
    return DirichletPosterior(counts), counts.to_mdp(discount=DISCOUNT, prior=1.0)


def timed(posterior: DirichletPosterior, mdp: MDP, device: str) -> tuple[float, Certificate]:
    """Return the seconds that a certificate takes, and the certificate."""
    began = time.perf_counter()
    policy = np.zeros(mdp.num_states, dtype=np.int64)
    rng = np.random.default_rng(1)
    made_there = certify(policy, posterior, mdp, draws=DRAWS, rng=rng, device=device)
    return time.perf_counter() - began, made_there


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu")
    parser.add_argument("--cores", type=Path, help="seconds of the cores, from --save")
    parser.add_argument("--save", type=Path, help="write the seconds of the cores here")
    parser.add_argument("--rates", action="store_true", help="measure draws and sweeps instead")
    given = parser.parse_args()
    if given.rates:
        from benchmarks.gpu_rates import print_rates

        print_rates()
        return
    known = json.loads(given.cores.read_text()) if given.cores else {}
    timed(*made(50, 4), "gpu")  # what every process pays once
    if COMPILES:
        timed(*made(50, 4), "cpu")
        for size in ((600, 4), (60, 30)):  # the kernels of all ways to evaluate
            timed(*made(*size), "cpu")
    print(
        f"{'states':>8} {'length':>6} {'entries':>10} {'cores':>9} {'gpu':>8}  auto  bounds apart"
    )
    patience = PATIENCE
    for states, length in SIZES:
        posterior, mdp = made(states, length)
        name = f"{states}x{length}"
        seconds, there = timed(posterior, mdp, "gpu")
        on_cores = known.get(name)
        apart = ""
        if on_cores is None and COMPILES and patience > 0:
            on_cores, here = timed(posterior, mdp, "cpu")
            patience -= on_cores
            known[name] = on_cores
            spread = here.upper_bound - here.lower_bound
            apart = f"{abs(there.lower_bound - here.lower_bound) / spread:.1%} of their width"
        auto = "gpu" if choose_engine("auto", mdp, posterior).on_device else "cores"
        slower = on_cores is not None and (auto == "gpu") != (seconds < on_cores)
        text = "-" if on_cores is None else f"{on_cores:.1f} s"
        print(
            f"{states:8,} {length:6} {mdp.num_entries:10,} {text:>9} {seconds:6.1f} s  "
            f"{auto:5}{' (slower)' if slower else ''} {apart}", flush=True,
        )  # fmt: skip
    if given.save:
        given.save.write_text(json.dumps(known, indent=1))


if __name__ == "__main__":
    main()
