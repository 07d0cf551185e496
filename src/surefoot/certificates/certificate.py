"""The certificate: the one place that says "with probability at least"."""

import json
from contextlib import suppress
from dataclasses import Field, asdict, dataclass, fields
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot._atomic import replacing
from surefoot._display import Shown
from surefoot._rounding import bracket_text, lower_text, near_text, upper_text

FORMAT = 1
"""Version of the JSON layout."""


GIVEN = {
    "bayesian": "given this prior and data",
    "frequentist": "whatever the true model among those of the stated support",
}
"""What a promise is conditional on, by its basis."""


def conditions(basis: str, assumptions: tuple[str, ...]) -> str:
    """Return what a promise is given and what it assumes, as the middle of a sentence.

    Examples
    --------
    >>> conditions("bayesian", ("assuming that all is well", "assuming that it stays so"))
    'given this prior and data, assuming that all is well, and that it stays so'
    """
    parts = [GIVEN[basis]]
    for text in assumptions:
        again = text.startswith("assuming that ") and parts[-1].startswith("assuming that ")
        parts.append(f"and {text.removeprefix('assuming ')}" if again else text)
    return ", ".join(parts)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Certificate(Shown):
    """What may be promised about one policy, and what no policy could be promised.

    For rewards (``objective="max"``) the promise is ``lower_bound`` and ``upper_bound`` is what
    could at best be promised; for costs (``"min"``) the promise is ``upper_bound``.

    Attributes
    ----------
    lower_bound, upper_bound
        The two ends.
    marginal_bound
        The promise in its marginal form: right on average over the Monte Carlo.
    scope
        Whom the other end speaks of: ``"no policy"`` or ``"no deterministic policy"``; with
        ``" among those allowed"`` where only some pairs were allowed.
    delta, eta
        Failure probability of the promise, and of the Monte Carlo itself.
    draws, other_draws
        Posterior draws behind the promise and behind the other end.
    seed
        The entropy of the generator the draws came from.
    basis
        ``"bayesian"`` (given the prior) or ``"frequentist"``.
    prior
        What the basis rests on, in words.
    objective
        ``"max"`` or ``"min"``.
    policy
        Action ids ``(S,)`` or probabilities ``(S, A)``.
    nominal_return, robust_return
        The policy's return in the nominal model; the value of the robust set it came from, if any.
    numerical_error
        The widest numerical bracket of a return, already subtracted.
    data_fingerprint, model_fingerprint
        Hashes of the posterior and of the model.
    assumptions
        What the sentence must add ("assuming ...").
    warnings
        What a reader should know besides.
    versions
        Of surefoot and of what it computed with.

    Examples
    --------
    >>> from surefoot import DirichletPosterior, certify, riverswim
    >>> counts = riverswim().simulate(50, np.random.default_rng(0))
    >>> mdp, posterior = counts.to_mdp(discount=0.99, prior=1.0), DirichletPosterior(counts)
    >>> right = np.ones(6, dtype=int)
    >>> made = certify(right, posterior, mdp, draws=500, rng=np.random.default_rng(1))
    >>> made.sentence.split(", ")[0], made.promise <= made.nominal_return
    ('With 95% confidence', True)
    >>> Certificate.from_json(made.to_json()).promise == made.promise
    True
    """

    lower_bound: float
    upper_bound: float
    marginal_bound: float | None
    scope: str
    delta: float
    eta: float
    draws: int
    other_draws: int
    seed: str
    basis: str
    prior: str
    objective: str
    policy: NDArray[Any]
    nominal_return: float
    robust_return: float | None
    numerical_error: float
    data_fingerprint: str
    model_fingerprint: str
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]
    versions: dict[str, str]

    @property
    def promise(self) -> float:
        """The promised number: a lower bound on the return or an upper bound on the cost."""
        return self.lower_bound if self.objective == "max" else self.upper_bound

    @property
    def gap(self) -> float:
        """How much more than the promise could at best be promised."""
        return self.upper_bound - self.lower_bound

    @property
    def relative_gap(self) -> float:
        """The gap as a share of the larger end."""
        largest = max(abs(self.lower_bound), abs(self.upper_bound))
        return self.gap / largest if largest > 0 else 0.0

    @property
    def confidence(self) -> str:
        """The confidence in percent, without rounding."""
        return percent(self.delta)

    @property
    def sentence(self) -> str:
        """The promise in one sentence."""
        given = conditions(self.basis, self.assumptions)
        low, high = bracket_text(self.lower_bound, self.upper_bound)
        start = "from the stated initial distribution"
        if self.objective == "max":
            promise = f"the policy's expected discounted return {start} is at least {low}"
            limit = f"{self.scope} can be promised more than {high}"
        else:
            promise = f"the policy's expected discounted cost {start} is at most {high}"
            limit = f"{self.scope} can be promised less than {low}"
        known = np.isfinite(self.lower_bound) and np.isfinite(self.upper_bound)
        ending = f"; {limit}." if known else "."
        return f"With {self.confidence} confidence, {given}, {promise}{ending}"

    def _headline(self) -> str:
        return self.sentence

    def _remarks(self) -> tuple[str, ...]:
        return self.warnings

    def _facts(self) -> list[tuple[str, str]]:
        reward = self.objective == "max"
        word, safe = ("return", lower_text) if reward else ("cost", upper_text)
        facts = [
            (
                "promise holds with probability at least",
                f"{self.confidence} (delta {self.delta:g})",
            ),
            ("basis", f"{self.basis}: {self.prior}"),
            (f"{word} in the nominal model", near_text(self.nominal_return)),
        ]
        if np.isfinite(self.gap):
            facts.append(("gap", f"{upper_text(self.gap, 4)} ({self.relative_gap:.2%})"))
        if self.robust_return is not None and self.robust_return != self.promise:
            facts.append((f"robust {word}, a looser promise", safe(self.robust_return)))
        if self.draws > 0:
            facts += [
                ("posterior draws", f"{self.draws:,}, and {self.other_draws:,} for the other end"),
                ("certainty of the Monte Carlo", f"{percent(self.eta)} (eta {self.eta:g})"),
            ]
        if self.marginal_bound is not None:
            facts.append(("promise, marginal form", safe(self.marginal_bound)))
        return [*facts, ("numerical error, subtracted", f"{self.numerical_error:.1e}")]

    def __repr__(self) -> str:
        low, high = bracket_text(self.lower_bound, self.upper_bound)
        made = f"eta {self.eta:g}, {self.draws:,} draws" if self.draws else self.basis
        return f"Certificate([{low}, {high}], delta {self.delta:g}, {made})"

    def to_json(self) -> str:
        """Return everything as JSON text."""
        content = asdict(self) | {
            "format": FORMAT,
            "policy": self.policy.tolist(),
            "sentence": self.sentence,
        }
        for end in ("lower_bound", "upper_bound"):
            if not np.isfinite(content[end]):
                content[end] = str(content[end])  # JSON has no infinities
        return json.dumps(content, indent=2, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "Certificate":
        """Read a certificate back; every field as it was written."""
        try:
            content = json.loads(text)
        except json.JSONDecodeError as problem:
            raise ValueError(f"this is not a certificate: {problem}.") from None
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ValueError(f"this is not a certificate of format {FORMAT}.")
        names = {field.name for field in fields(cls)}
        missing = sorted(names - set(content))
        if missing:
            raise ValueError(f"the certificate lacks {', '.join(missing)}.")
        return cls(**{field.name: _restored(field, content[field.name]) for field in fields(cls)})

    def save(self, path: str | Path) -> None:
        """Write the certificate as JSON; the file appears whole or not at all."""
        with replacing(path, "w", encoding="utf-8") as file:
            file.write(self.to_json() + "\n")

    @classmethod
    def load(cls, path: str | Path) -> "Certificate":
        """Read a certificate from a JSON file."""
        return cls.from_json(Path(path).read_text(encoding="utf-8"))


def _restored(field: Field[Any], value: Any) -> Any:
    """Return a field from what JSON kept of it, or say what is wrong with it."""
    wanted = str(field.type)
    if field.name == "policy":
        if isinstance(value, list) and value:
            with suppress(ValueError, TypeError, OverflowError):
                policy = np.array(value)
                if policy.dtype.kind in "iuf":
                    return policy
    elif wanted.startswith("tuple"):
        if isinstance(value, list) and all(isinstance(text, str) for text in value):
            return tuple(value)
    elif field.name in ("lower_bound", "upper_bound") and value in ("inf", "-inf"):
        return float(value)
    elif (value is None and "None" in wanted) or _is_of(value, field.type):
        return value
    raise ValueError(f"the certificate's {field.name} cannot be {value!r}.")


def _is_of(value: Any, wanted: Any) -> bool:
    if wanted is str or wanted is int:
        return type(value) is wanted
    if str(wanted).startswith("dict"):
        return isinstance(value, dict)
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def percent(failure: float) -> str:
    """Return ``1 - failure`` in percent, exactly: 0.05 is "95%", 0.001 is "99.9%".

    Examples
    --------
    >>> percent(0.05), percent(0.001), percent(0.2)
    ('95%', '99.9%', '80%')
    """
    share = 100 * (1 - Decimal(repr(float(failure))))
    return f"{share.normalize():f}%"
