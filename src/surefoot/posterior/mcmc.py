"""Run NumPyro's sampler: the only module that needs the extra ``mcmc``."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Chains:
    """The draws that a sampler returned.

    Attributes
    ----------
    parameters
        Draws by name, ``(chains, draws, ...)``.
    divergences
        The number of divergent transitions.
    """

    parameters: Mapping[str, Floats]
    divergences: int


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Settings of a Markov chain run.

    Attributes
    ----------
    draws, warmup
        Number of draws and of warm-up steps per chain.
    chains
        Number of chains.
    progress
        Whether to show a bar while sampling and the diagnostics at the end (standard error).
    """

    draws: int = 1000
    warmup: int = 1000
    chains: int = 4
    progress: bool = True

    def __post_init__(self) -> None:
        for name in ("draws", "warmup", "chains"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name}={value!r}; it must be a whole number, 1 or more.")


def require(package: str) -> Any:
    """Import a package of the extra ``mcmc``, or raise an error that says how to install it."""
    import importlib

    try:
        return importlib.import_module(package)
    except ImportError:
        raise ImportError(
            f"hierarchical models need {package.split('.')[0]}, which is not installed. Install "
            "the extra: pip install 'surefoot[mcmc]'."
        ) from None


def run_nuts(model: Callable[[], None], sampling: Sampling, rng: np.random.Generator) -> Chains:
    """Sample a NumPyro model with the no-U-turn sampler, in double precision.

    The chains run side by side in one vectorised program.
    """
    jax, infer = require("jax"), require("numpyro.infer")
    with _double_precision(jax):
        mcmc = infer.MCMC(
            infer.NUTS(model),
            num_warmup=sampling.warmup,
            num_samples=sampling.draws,
            num_chains=sampling.chains,
            chain_method="vectorized",
            progress_bar=sampling.progress,
        )
        mcmc.run(jax.random.PRNGKey(int(rng.integers(2**31))), extra_fields=("diverging",))
        samples = mcmc.get_samples(group_by_chain=True)
        diverging = mcmc.get_extra_fields(group_by_chain=True)["diverging"]
        parameters = {name: np.asarray(value, np.float64) for name, value in samples.items()}
        return Chains(parameters=parameters, divergences=int(np.asarray(diverging).sum()))


def _double_precision(jax: Any) -> Any:
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    return require("jax.experimental").enable_x64()


def show(text: str) -> None:
    """Print a line to standard error."""
    sys.stderr.write(text + "\n")
