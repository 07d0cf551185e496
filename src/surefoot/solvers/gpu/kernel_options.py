"""How kernels written in Pallas are run."""

from typing import Any


def kernel_options(*, interpret: bool, warps: int = 1) -> dict[str, Any]:
    """Return how `pallas_call` runs a kernel: on a GPU by groups of threads, or step by step here.

    Examples
    --------
    >>> kernel_options(interpret=True)
    {'interpret': True}
    """
    if interpret:
        return {"interpret": True}
    from jax.experimental.pallas import triton

    return {"compiler_params": triton.CompilerParams(num_warps=warps, num_stages=1)}
