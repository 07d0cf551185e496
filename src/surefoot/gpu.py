"""``python -m surefoot.gpu counts.npz``: from counts to a certificate on a bare GPU machine.

For machines on which nothing can be installed and that have only Python, NumPy, SciPy and JAX with
a GPU: no numba, no DuckDB, no typer. Count the log elsewhere (``counts.save("counts.npz")``; every
run folder has this file), copy the file to the GPU machine, and copy certificate, policy and model
back: `surefoot.verify` accepts them there.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Event, Thread

if __name__ == "__main__" and "cpu" not in sys.argv:
    # A run on a device needs no compiled kernels, and compiling them takes 15 seconds.
    os.environ["SUREFOOT_COMPILE"] = "no"

import numpy as np

from surefoot._atomic import replacing
from surefoot.certificates.device_search import rehearse
from surefoot.certificates.optimize import Result, optimize
from surefoot.data.conversions import ABSORBING, WORST, lead_on
from surefoot.data.counts import Counts
from surefoot.model.mdp import MDP
from surefoot.model.npz_files import write_npz
from surefoot.posterior.dirichlet import DirichletPosterior
from surefoot.posterior.learned import LearnedPosterior
from surefoot.posterior.protocol import Posterior
from surefoot.solvers.gpu.device import DEVICES, Device, find_gpu
from surefoot.solvers.gpu.engine import DeviceEngine
from surefoot.solvers.gpu.sources import can_draw

SWITCH_SECONDS = 5e-4
"""How long a thread may keep the GIL while others wait. With Python's default, ten times as long,
threads that read files or add arrays wait too long for one that imports or compiles."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Choose and certify a policy; return the exit code."""
    given = _parser().parse_args(arguments)
    try:
        began = time.monotonic()
        sys.setswitchinterval(SWITCH_SECONDS)
        rehearsed = None
        if given.device != "cpu":  # starting JAX takes seconds; the counts are read meanwhile
            started = ThreadPoolExecutor(1).submit(_start_jax)
            rehearsed = partial(_rehearse, started, given.draws)
        counts = Counts.load(given.counts)
        posterior, mdp = build(counts, given.discount, given.prior, rehearsed)
        _say(f"{posterior!r}, {mdp!r}: {time.monotonic() - began:.1f} s")
        given.out.mkdir(parents=True, exist_ok=True)
        model = Thread(target=write_npz, args=(mdp, given.out / "model.npz"))
        model.start()  # writing the model takes a while: it is done alongside the search
        result = optimize(
            posterior, mdp, delta=given.delta, eta=given.eta, draws=given.draws,
            rng=np.random.default_rng(given.seed), device=given.device,
            progress=lambda name, best: _say(
                f"{time.monotonic() - began:6.1f} s  {name}: best so far {best:.6g}"
            ),
        )  # fmt: skip
        _write(result, mdp, given.out)
        model.join()
        _say(f"{result.certificate.sentence}\n{time.monotonic() - began:.1f} s in all; {given.out}")
    except (ValueError, OSError, ImportError, MemoryError) as problem:
        sys.stderr.write(f"surefoot.gpu: {problem}\n")
        return 1
    return 0


def build(
    counts: Counts, discount: float, prior: float | None,
    meanwhile: Callable[[Posterior, Callable[[], MDP], Event], None] | None = None,
) -> tuple[Posterior, MDP]:  # fmt: skip
    """Return the posterior of counts and the model of its mean.

    If ``prior`` is None, the prior is learned from all rows. ``meanwhile`` is called as soon as the
    rows of the model are known: with the posterior, with a function that makes a model of the same
    shape, and with an event that is set once the posterior has learned all that draws need.

    Examples
    --------
    >>> from surefoot import riverswim
    >>> counts = riverswim().simulate(20, np.random.default_rng(0))
    >>> posterior, mdp = build(counts, 0.95, 1.0)
    >>> posterior.matches(mdp)
    True
    """
    posterior: LearnedPosterior | DirichletPosterior
    if prior is None:
        posterior = LearnedPosterior(counts)
    else:
        posterior = DirichletPosterior(counts.on_support(), prior)
    shaped = partial(posterior.counts.to_mdp, discount=discount, prior=prior, unseen=ABSORBING)
    learned = Event()
    if meanwhile is not None:
        meanwhile(posterior, shaped, learned)
    try:
        if isinstance(posterior, LearnedPosterior):
            mdp = posterior.to_mdp(discount=discount, unseen=ABSORBING)
        else:
            mdp = shaped()
    finally:
        learned.set()
    return posterior, lead_on(mdp, posterior.counts, WORST)


def _start_jax() -> Device | None:
    """Start JAX and use the GPU once, which reserves its memory."""
    found = find_gpu()
    if found is not None:
        import jax
        import jax.experimental.pallas.triton

        (jax.device_put(np.zeros(1), found.handle) + 1).block_until_ready()
    return found


def _rehearse(
    started: "Future[Device | None]", draws: int | None, posterior: Posterior,
    shaped: Callable[[], MDP], learned: Event,
) -> None:  # fmt: skip
    """Compile the GPU programs of the coming search in a thread."""

    def compile_all() -> None:
        device = started.result()
        if device is not None and can_draw(posterior):
            rehearse(posterior, shaped(), DeviceEngine(device=device), draws, learned)

    Thread(target=compile_all, daemon=True).start()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m surefoot.gpu", description="From saved counts to a certificate, on a GPU."
    )
    parser.add_argument("counts", type=Path, help="counts.npz of a run folder, or Counts.save")
    parser.add_argument("--discount", type=float, required=True)
    parser.add_argument("--delta", type=float, default=0.05, help="failure probability (0.05)")
    parser.add_argument("--eta", type=float, default=0.001, help="the same for the draws (0.001)")
    parser.add_argument("--prior", type=float, help="Dirichlet parameter (learned)")
    parser.add_argument("--draws", type=int, help="posterior draws for each bound (chosen)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", choices=DEVICES, default="gpu")
    parser.add_argument("--out", type=Path, default=Path("promise"), help="folder to write")
    return parser


def _write(result: Result, mdp: MDP, folder: Path) -> None:
    """Write certificate.json and policy.csv."""
    result.certificate.save(folder / "certificate.json")
    policy = np.asarray(result.policy)
    with replacing(folder / "policy.csv", "w", encoding="utf-8") as file:
        file.write("state,action\n")
        for state, action in enumerate(policy):
            file.write(f"{_label(mdp.state_labels, state)},{_label(mdp.action_labels, action)}\n")


def _label(labels: tuple[object, ...] | None, number: int) -> str:
    text = str(number if labels is None else labels[number])
    return '"' + text.replace('"', '""') + '"' if set(text) & set(',"\n') else text


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    os._exit(code)  # everything is written; shutting JAX down would take another second
