"""The numbers printed in the paper: tables 1 and 2 and the five appendix tables.

Source: Behzadian, Russel, Petrik and Ho, *Optimizing Percentile Criterion using Robust MDPs*
(AISTATS 2021).
"""

from typing import NamedTuple

BASES = ("bayesian", "frequentist")
NORM_TITLES = {"l1": "L1", "linf": "L-infinity"}
NORMS = tuple(NORM_TITLES)
WEIGHTS = ("uniform", "analytic", "socp")
DELTAS = (0.5, 0.05)


class Method(NamedTuple):
    """One way to build the sets: a row and a column of an appendix table."""

    basis: str
    norm: str
    weights: str

    @property
    def sets(self) -> str:
        """The name of the sets in tables, without their weights."""
        return f"{NORM_TITLES[self.norm]} {'B' if self.basis == 'bayesian' else 'H'}"

    @property
    def title(self) -> str:
        """The name of the method in tables."""
        return f"{self.sets}, {self.weights}"


METHODS = tuple(
    Method(basis, norm, weights)
    for basis in BASES
    for norm in NORMS
    for weights in WEIGHTS
    if (norm, weights) != ("linf", "socp")  # the conic program is for L1 sets only
)
"""The ten cells of an appendix table, for one delta."""

NOMINAL = {
    "riverswim": 63080.0,
    "machine": -16.79,
    "population": -4127.0,
    "inventory": 163.1,
    "cartpole": 11.11,
}
"""Return of the nominal model: the optimum of the true model from a uniform first state."""

_GUARANTEES = {
    "riverswim": """
        33887 51470 48620 25252 47284 43504
        33887 48258     - 25252 43247     -
        16354 33116 30268 12555 29472 26398
        20055 40166     - 15184 35955     -""",
    "machine": """
        -38.1 -22.7 -26.8  -42.0 -23.7 -28.4
        -38.1 -22.6     -  -42.0 -23.5     -
        -86.8 -33.2 -47.9 -115.0 -34.5 -53.1
        -62.9 -29.5     -  -74.8 -32.6     -""",
    "population": """
        -25706 -12151 -12668 -25741 -12200 -12704
        -26782 -15468      - -26795 -15623      -
        -27499 -27034 -27409 -27501 -27047 -27421
        -27465 -27143      - -27473 -27184      -""",
    "inventory": """
         3.75 15.7  10.9  3.64 15.0  10.6
         3.04 20.2     -  2.87 19.8     -
        -8.91 1.58 -6.18 -8.94 0.89 -7.74
        -8.37 5.83     - -8.63 4.90     -""",
    "cartpole": """
        3.83 8.28 4.21 3.82 8.25 4.20
        3.81 7.78    - 3.78 7.71    -
        2.81 3.44 2.87 2.80 3.42 2.85
        3.18 3.94    - 3.15 3.92    -""",
}
"""Appendix tables as printed: lines L1 B, L-infinity B, L1 H, L-infinity H; columns uniform,
analytic and SOCP weights, for delta 0.5 and then 0.05."""


def _parse(text: str) -> dict[tuple[Method, float], float]:
    columns = [(delta, weights) for delta in DELTAS for weights in WEIGHTS]
    found = {}
    lines = text.strip().splitlines()
    for (basis, norm), line in zip(
        ((basis, norm) for basis in BASES for norm in NORMS), lines, strict=True
    ):
        for (delta, weights), number in zip(columns, line.split(), strict=True):
            if number != "-":
                found[Method(basis, norm, weights), delta] = float(number)
    return found


_TABLES = {domain: _parse(text) for domain, text in _GUARANTEES.items()}

SUMMARY = {
    "bayesian": {
        "riverswim": (0.60, 0.60, 0.25, 0.31),
        "machine": (1.56, 1.56, 0.41, 0.39),
        "population": (5.24, 5.50, 1.84, 3.10),
        "inventory": (0.97, 0.98, 0.90, 0.87),
        "cartpole": (0.77, 0.76, 0.12, 0.19),
    },
    "frequentist": {
        "riverswim": (0.80, 0.76, 0.53, 0.43),
        "machine": (5.83, 3.45, 1.05, 0.94),
        "population": (5.66, 5.65, 5.55, 5.56),
        "inventory": (1.05, 1.05, 0.99, 0.96),
        "cartpole": (0.78, 0.78, 0.77, 0.69),
    },
}
"""Tables 1 and 2 as printed, delta 0.05: normalised losses of uniform L1, uniform L-infinity,
optimised L1, optimised L-infinity."""

SUMMARY_DELTA = 0.05
SUMMARY_METHODS = (
    ("l1", "uniform"),
    ("linf", "uniform"),
    ("l1", "analytic"),
    ("linf", "analytic"),
)
"""The methods of the four numbers of a summary, as (norm, weights)."""

IMPROVEMENT = {"bayesian": 2.8, "frequentist": 1.6}
"""Printed geometric means of (loss with uniform weights) / (loss with optimised weights).

They follow from the L1 rows of tables 1 and 2, over all five domains, and from nothing else.
"""


def published_guarantee(domain: str, method: Method, delta: float) -> float | None:
    """Return the guarantee printed in the appendix; None if the paper has none.

    Examples
    --------
    >>> published_guarantee("riverswim", Method("bayesian", "l1", "analytic"), 0.05)
    47284.0
    >>> published_guarantee("riverswim", Method("bayesian", "l1", "analytic"), 0.1) is None
    True
    """
    return _TABLES.get(domain, {}).get((method, delta))


def printed_loss(domain: str, method: Method, delta: float) -> float | None:
    """Return the normalised loss printed in table 1 or 2; None if the paper has none.

    Examples
    --------
    >>> printed_loss("machine", Method("bayesian", "l1", "uniform"), 0.05)
    1.56
    """
    place = (method.norm, method.weights)
    losses = SUMMARY[method.basis].get(domain)
    if losses is None or delta != SUMMARY_DELTA or place not in SUMMARY_METHODS:
        return None
    return losses[SUMMARY_METHODS.index(place)]


def normalised_loss(domain: str, guarantee: float, nominal: float | None = None) -> float:
    """Return ``(nominal - guarantee) / |nominal|``; by default for the published nominal return.

    Examples
    --------
    >>> round(normalised_loss("riverswim", 25252.0), 2)
    0.6
    """
    best = NOMINAL[domain] if nominal is None else nominal
    return (best - guarantee) / abs(best)
