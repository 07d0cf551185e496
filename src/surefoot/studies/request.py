"""What to reproduce: domains, methods, and the numbers of samples, draws and data sets."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from surefoot._arguments import check_inside
from surefoot.domains.catalogue import DOMAINS, as_domain
from surefoot.domains.domain import Domain
from surefoot.studies.cells import SETTINGS, TableCell
from surefoot.studies.posteriors import DIRICHLET, OWN, POSTERIORS, StudyFit
from surefoot.studies.published import BASES, DELTAS, METHODS, NOMINAL, Method

SAMPLES, DRAWS = 20, 20
"""Samples per state-action pair and posterior draws, as the paper states them."""
RIVERSWIM_SAMPLES = {"bayesian": 500, "frequentist": 590}
RIVERSWIM_DRAWS = 1000
"""The sizes that the paper's RiverSwim numbers imply."""


def usual_samples(domain: str, basis: str) -> int:
    """Return the transitions per state-action pair that fit the published numbers.

    Examples
    --------
    >>> usual_samples("riverswim", "bayesian"), usual_samples("machine", "bayesian")
    (500, 20)
    """
    return RIVERSWIM_SAMPLES[basis] if domain == "riverswim" else SAMPLES


def usual_draws(domain: str) -> int:
    """Return the number of posterior draws that fits the published numbers."""
    return RIVERSWIM_DRAWS if domain == "riverswim" else DRAWS


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to reproduce.

    Attributes
    ----------
    bases
        ``"bayesian"`` (table 1 and the rows B of the appendix), ``"frequentist"`` (table 2, rows
        H), or both.
    domains
        Names in the catalogue, or your own domains with other names.
    deltas, settings
        Failure probabilities and settings (`SETTINGS`).
    seeds
        Number of data sets.
    samples, draws
        Transitions per state-action pair, and posterior draws; None means those that fit the
        published numbers (for draws in the valid setting: as many as the rules need).
    prior
        Dirichlet parameter of every successor; None takes that of each domain.
    posterior
        A name in :data:`surefoot.studies.posteriors.POSTERIORS`, or a function from counts, domain
        and generator to a posterior on the rows of the domain.

    Examples
    --------
    >>> len(list(Request(domains=("machine",), settings=("paper",), seeds=2).cells()))
    40
    """

    bases: tuple[str, ...] = BASES
    domains: tuple[str | Domain, ...] = tuple(NOMINAL)
    deltas: tuple[float, ...] = DELTAS
    settings: tuple[str, ...] = SETTINGS
    seeds: int = 5
    samples: int | None = None
    draws: int | None = None
    prior: float | None = None
    posterior: str | StudyFit = DIRICHLET

    def __post_init__(self) -> None:
        for name, allowed in (("bases", BASES), ("settings", SETTINGS)):
            for given in getattr(self, name):
                _check_word(name, given, allowed)
        _check_domains(self.domains)
        for delta in self.deltas:
            check_inside("delta", delta)
        for name in ("seeds", "samples", "draws"):
            number = getattr(self, name)
            if number is not None and not number >= 1:
                raise ValueError(f"{name}={number}; it must be a whole number, 1 or more.")
        _check_posterior(self.prior, self.posterior)

    @cached_property
    def worlds(self) -> dict[str, Domain]:
        """The domains by name, with the requested prior."""
        made = [as_domain(domain) for domain in self.domains]
        if self.prior is not None:
            made = [replace(domain, prior=self.prior) for domain in made]
        return {domain.name: domain for domain in made}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the domains."""
        return tuple(map(_name, self.domains))

    @property
    def fit(self) -> StudyFit:
        """The function that makes a posterior from counts."""
        return POSTERIORS[self.posterior] if isinstance(self.posterior, str) else self.posterior

    def cells(self) -> Iterator[TableCell]:
        """Yield every cell; cells of one data set are consecutive."""
        for domain in self.names:
            for setting in self.settings:
                for basis in self.bases:
                    methods = [m for m in METHODS if m.basis == basis and _offers(setting, m)]
                    for seed in range(self.seeds):
                        for delta in self.deltas:
                            for method in methods:
                                yield self._cell(setting, domain, method, delta, seed)

    def _cell(
        self, setting: str, domain: str, method: Method, delta: float, seed: int
    ) -> TableCell:
        draws = self.draws or (0 if setting == "valid" else usual_draws(domain))
        return TableCell(
            setting=setting,
            domain=domain,
            method=method,
            delta=delta,
            samples=self.samples or usual_samples(domain, method.basis),
            draws=draws if method.basis == "bayesian" else 0,
            seed=seed,
            posterior=self.posterior if isinstance(self.posterior, str) else OWN,
        )


def _offers(setting: str, method: Method) -> bool:
    """Return whether a setting has such sets: Bernstein's bound is for frequentist L1 sets."""
    return setting != "bernstein" or (method.basis, method.norm) == ("frequentist", "l1")


def _name(domain: str | Domain) -> str:
    return domain if isinstance(domain, str) else domain.name


def _check_word(name: str, given: object, allowed: tuple[str, ...]) -> None:
    if given not in allowed:
        raise ValueError(f"{name}: {given!r}; choose from {', '.join(allowed)}.")


def _check_domains(domains: tuple[str | Domain, ...]) -> None:
    names = tuple(map(_name, domains))
    for domain, name in zip(domains, names, strict=True):
        if isinstance(domain, str):
            _check_word("domains", name, tuple(DOMAINS))
        elif name in NOMINAL:
            raise ValueError(
                f"domains: {name!r} has published numbers, which are not about your own model. "
                f"Give the name {name!r} alone, or rename your domain: "
                "dataclasses.replace(domain, name=...)."
            )
        elif not re.fullmatch(r"[\w .,+-]+", name):  # it becomes part of a file name
            raise ValueError(
                f"domains: the name {name!r}; use letters, digits, spaces and any of _ . , + -"
            )
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ValueError(f"domains: {twice[0]!r} is given twice; give each its own name.")


def _check_posterior(prior: float | None, posterior: str | StudyFit) -> None:
    if isinstance(posterior, str):
        _check_word("posterior", posterior, tuple(POSTERIORS))
    if prior is None:
        return
    if not 0 < prior < float("inf"):
        raise ValueError(f"prior={prior}; it must be a finite number above 0.")
    if isinstance(posterior, str) and posterior != DIRICHLET:
        raise ValueError(
            f"prior={prior} is a parameter of Dirichlet rows; posterior={posterior!r} has none. "
            "Leave one of them out."
        )
