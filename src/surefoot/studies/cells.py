"""Cells of the tables, and the cache that lets an interrupted run continue."""

import json
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from surefoot._atomic import replacing
from surefoot._fingerprint import fingerprint
from surefoot._version import __version__
from surefoot.certificates.provenance import model_fingerprint
from surefoot.domains.domain import Domain
from surefoot.studies.posteriors import DIRICHLET
from surefoot.studies.published import NOMINAL, Method

SETTINGS = ("paper", "bernstein", "valid")
"""The paper's rules, the same with Bernstein's bound instead of Hoeffding's, and our rules."""
FORMAT = 2
"""Raise it when the numbers of a cell change meaning: older results are then recomputed."""


@dataclass(frozen=True, kw_only=True)
class TableCell:
    """One number: a method in a setting on one data set of a domain.

    Attributes
    ----------
    setting
        ``"paper"`` (its own rules, no guarantee), ``"bernstein"`` (the same with the paper's other
        frequentist bound, for L1 sets) or ``"valid"``.
    domain
        Its name.
    method
        Basis, norm and weights.
    delta
        Failure probability.
    samples
        Transitions per state-action pair.
    draws
        Posterior draws; 0 means as many as the rule needs (none for frequentist sets).
    seed
        Number of the data set.
    posterior
        Which posterior the sets come from; :data:`surefoot.studies.posteriors.POSTERIORS`.

    Examples
    --------
    >>> TableCell(setting="paper", domain="machine", method=Method("bayesian", "l1", "uniform"),
    ...           delta=0.05, samples=20, draws=20, seed=3).file_name
    'paper-machine-bayesian-l1-uniform-delta0.05-samples20-draws20-seed3.json'
    """

    setting: str
    domain: str
    method: Method
    delta: float
    samples: int
    draws: int
    seed: int
    posterior: str = DIRICHLET

    @property
    def file_name(self) -> str:
        """The name of the file with its result."""
        other = "" if self.posterior == DIRICHLET else f"-{self.posterior}"
        return (
            f"{self.setting}-{self.domain}-{'-'.join(self.method)}-delta{self.delta!r}"
            f"-samples{self.samples}-draws{self.draws}{other}-seed{self.seed}.json"
        )

    @property
    def data_set(self) -> tuple[str, str, str, int, int, int]:
        """The key shared by cells that are computed from the same counts and draws."""
        basis = self.method.basis
        return self.setting, self.domain, basis, self.samples, self.draws, self.seed

    def rng(self, purpose: int) -> np.random.Generator:
        """Return the generator of the data (0), the draws (1) or the fit (2) of this cell.

        All settings use the same data.
        """
        names = list(NOMINAL)
        known = self.domain in names
        place = names.index(self.domain) if known else zlib.crc32(self.domain.encode())
        return np.random.default_rng([self.seed, self.samples, place, purpose])


@dataclass(frozen=True, kw_only=True)
class CellResult:
    """What was found in a cell.

    Attributes
    ----------
    guarantee
        Lower bound on the robust return.
    converged
        Whether the solver reached its tolerance.
    draws
        Posterior draws used.
    seconds
        Time by stage: data, draws, set, solve. Shared work counts towards the first cell only.
    """

    guarantee: float
    converged: bool
    draws: int
    seconds: dict[str, float]


def load(folder: Path, cell: TableCell, domain: Domain) -> CellResult | None:
    """Return a result computed before; None if there is none for this cell, model and version."""
    try:
        kept = json.loads((folder / cell.file_name).read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    heading = _heading(cell, domain)
    if {name: kept.get(name) for name in heading} != heading:
        return None
    return CellResult(**kept["outcome"])


def store(folder: Path, cell: TableCell, domain: Domain, outcome: CellResult) -> None:
    """Write a result atomically: a reader sees all of it or nothing."""
    kept = {**_heading(cell, domain), "outcome": asdict(outcome)}
    with replacing(folder / cell.file_name, "w", encoding="utf-8") as file:
        json.dump(kept, file, indent=1, allow_nan=False)


def _heading(cell: TableCell, domain: Domain) -> dict[str, object]:
    """Return what a result depends on; domains of the same name may be different models."""
    return {
        "format": FORMAT,
        "version": __version__,
        "cell": {**asdict(cell), "method": list(cell.method)},
        "domain": fingerprint(model_fingerprint(domain.mdp), domain.prior),
    }
