"""What may be promised about one policy, with everything the promise rests on."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
from numpy.typing import NDArray

from surefoot._atomic import replacing
from surefoot._display import Grid, Shown
from surefoot._findings import Finding, WithFindings, gravest_first, stated, texts_of
from surefoot._rounding import bracket_text, lower_text, near_text, upper_text
from surefoot.certificates import sentences
from surefoot.certificates.evidence import (
    Backtest,
    Behaviour,
    Curse,
    Doubt,
    Gain,
    Split,
    Tilted,
    minus,
)
from surefoot.certificates.json_fields import NOT_KEPT, from_plain, kept_fields, to_plain
from surefoot.certificates.tables import tilted_grid
from surefoot.model.step_policy import StepPolicy

FORMAT = 2
"""Version of the JSON layout; format 1, written by version 0.1, can still be read."""
OF_THE_GAIN = "returns_within_log"
"""The assumption that only the gain over the log makes, not the promise."""
EARLY_IN_FORMAT_1 = (
    "the time budget ended the search; the promise holds, and a longer search may find more."
)
"""The one sentence of format 1 that is turned back into a finding, because programs ask for it."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Certificate(WithFindings, Shown):
    """What may be promised about one policy, and a limit on what any policy could be promised.

    For rewards (``objective="max"``) the promise is ``lower_bound``, and ``upper_bound`` is the
    most that could be promised; for costs (``"min"``) it is the other way round.

    Attributes
    ----------
    lower_bound, upper_bound
        The promise and the limit, in the order above.
    marginal_bound
        The promise in its marginal form, which holds on average over the Monte Carlo draws.
    scope
        Which policies the limit covers: ``"no policy"`` or ``"no deterministic policy"``, with
        ``" among those allowed"`` where only some pairs were allowed.
    delta, eta
        Failure probability of the promise, and of the Monte Carlo itself.
    draws, other_draws
        Posterior draws behind the promise and behind the limit.
    seed
        The entropy of the generator that made the draws.
    basis
        ``"bayesian"`` (given the prior) or ``"frequentist"``.
    prior
        What the basis rests on, in words.
    objective
        ``"max"`` or ``"min"``.
    policy
        Action ids ``(S,)`` or probabilities ``(S, A)``; with a horizon perhaps a `StepPolicy`.
    nominal_return, robust_return
        The policy's return in the nominal model; the value of the robust set it came from, if any.
    numerical_error
        The widest numerical bracket of a return; the promise already allows for it.
    data_fingerprint, model_fingerprint
        Hashes of the posterior and of the model.
    versions
        The versions of surefoot, Python and the libraries that computed the numbers.
    findings
        What the promise assumes, and what else a reader should know.
    split
        How the log was divided into a choosing and a certifying part; None if it was not.
    curse
        How much choosing on the same data flatters the policy, already subtracted; None if that was
        not measured.
    behaviour, gain
        What the log's own decisions earned, and how much better the policy is at least.
    backtest
        How the policy fared on a held-out part of the log.
    doubt
        Where the doubt comes from, by cause.
    tilted
        Where something seems to be missing from the state: the returns of policies between what was
        done and this one, by the episodes of the log and by its model.
    horizon, discount
        The most steps that are counted, None for no limit; and the discount per step, None where it
        is not known.
    unit
        What the numbers are measured in, for instance ``"EUR"``.
    stream
        The random stream the draws came from; None without draws.
    starts
        How many episodes of the log show the first state; None where its distribution was stated.
    returns
        What the policy earns in each of the ``draws`` of its promise, at the lower end of its
        numerical bracket and in rewards, whatever the objective. Files do not hold it: None in a
        certificate that was read from one.

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
    policy: NDArray[Any] | StepPolicy
    nominal_return: float
    robust_return: float | None
    numerical_error: float
    data_fingerprint: str
    model_fingerprint: str
    versions: dict[str, str]
    findings: tuple[Finding, ...] = ()
    split: Split | None = None
    curse: Curse | None = None
    behaviour: Behaviour | None = None
    gain: Gain | None = None
    backtest: Backtest | None = None
    doubt: Doubt | None = None
    tilted: tuple[Tilted, ...] = ()
    horizon: int | None = None
    unit: str | None = None
    stream: str | None = None
    discount: float | None = None
    starts: int | None = None
    returns: NDArray[np.float64] | None = field(default=None, metadata=NOT_KEPT)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons for doubt, in sentences."""
        return texts_of(gravest_first(self.findings), "failed", "warning")

    @property
    def notes(self) -> tuple[str, ...]:
        """What else is good to know, in sentences."""
        return texts_of(self.findings, "note")

    def has(self, code: str) -> bool:
        """Return whether there is a finding with this code."""
        return any(found.code == code for found in self.findings)

    @property
    def promise(self) -> float:
        """The promised number: a lower bound on the return or an upper bound on the cost."""
        return self.lower_bound if self.objective == "max" else self.upper_bound

    @property
    def taken_off(self) -> float:
        """The deductions for luck in choosing and for the first state, already in the promise."""
        luck = 0.0 if self.curse is None else self.curse.mean + self.curse.spread
        first = [f.values["amount"] for f in self.findings if f.code == "first_state_unsure"]
        return luck + sum(float(amount or 0.0) for amount in first)

    @property
    def gap(self) -> float:
        """The distance between the promise and the most that could be promised."""
        return self.upper_bound - self.lower_bound

    @property
    def relative_gap(self) -> float:
        """The gap as a share of the larger end."""
        largest = max(abs(self.lower_bound), abs(self.upper_bound))
        return self.gap / largest if largest > 0 else 0.0

    @property
    def confidence(self) -> str:
        """The confidence in percent, without rounding."""
        return sentences.percent(self.delta)

    @property
    def sentence(self) -> str:
        """The promise in one sentence."""
        claim = sentences.promise(
            self.lower_bound, self.upper_bound, scope=self.scope, objective=self.objective,
            unit=self.unit, horizon=self.horizon, discounted=self.discount != 1.0,
            by_step=isinstance(self.policy, StepPolicy) or self.has("rows_by_step"),
            unseen=self._unseen, starts=self.starts,
        )  # fmt: skip
        own = [found for found in self.findings if found.code != OF_THE_GAIN]
        said = sentences.surely(self.delta, self.basis, own, claim)
        return sentences.not_certified(self.failures, said) if self.withheld else said

    def limit_sentence(self, best: str) -> str:
        """Return the limit as a sentence; ``best`` is how the sentence names the number."""
        said = sentences.limit(
            best, scope=self.scope, objective=self.objective, unseen=self._unseen
        )
        return f"{said[0].upper()}{said[1:]}."

    @property
    def _unseen(self) -> bool:
        return self.has("unseen_learned") or self.has("unseen_no_worse")

    @property
    def gain_sentence(self) -> str:
        """The gain over the log in one sentence; "" where none is certified."""
        if self.withheld or self.gain is None or self.gain.lower_bound is None:
            return ""
        claim = sentences.difference(
            self.gain.lower_bound, a="the policy", b="what was done in the log",
            objective=self.objective, unit=self.unit,
        )  # fmt: skip
        return sentences.surely(self.delta, self.basis, self.findings, claim)

    def mirrored(self) -> Certificate:
        """Convert a certificate about rewards into one about costs, or back."""
        return replace(
            self,
            lower_bound=0.0 - self.upper_bound,
            upper_bound=0.0 - self.lower_bound,
            marginal_bound=minus(self.marginal_bound),
            nominal_return=0.0 - self.nominal_return,
            robust_return=minus(self.robust_return),
            objective="min" if self.objective == "max" else "max",
            findings=tuple(found.mirrored() for found in self.findings),
            behaviour=None if self.behaviour is None else self.behaviour.mirrored(),
            gain=None if self.gain is None else self.gain.mirrored(),
            doubt=None if self.doubt is None else self.doubt.mirrored(),
            tilted=tuple(one.mirrored() for one in self.tilted),
        )

    _pictured = True

    def _headline(self) -> str:
        return self.sentence

    def _remarks(self) -> tuple[Finding, ...]:
        remarks = [found for found in self.findings if found.level != "assumption"]
        return gravest_first(remarks)

    def _facts(self) -> list[tuple[str, str]]:
        reward = self.objective == "max"
        word, safe = ("return", lower_text) if reward else ("cost", upper_text)
        facts = [
            (sentences.HOLDS, f"{self.confidence} (delta {self.delta:g})"),
            ("basis", f"{self.basis}: {self.prior}"),
            (f"{word} in the nominal model", near_text(self.nominal_return)),
        ]
        if np.isfinite(self.gap):
            facts.append(("gap", f"{upper_text(self.gap, 4)} ({self.relative_gap:.2%})"))
        if self.robust_return is not None and self.robust_return != self.promise:
            facts.append((f"robust {word}, a looser promise", safe(self.robust_return)))
        if self.draws > 0:
            facts += [
                ("posterior draws", f"{self.draws:,}, and {self.other_draws:,} for the limit"),
                (
                    "certainty of the Monte Carlo",
                    f"{sentences.percent(self.eta)} (eta {self.eta:g})",
                ),
            ]
        if self.marginal_bound is not None:
            facts.append(("promise, marginal form", safe(self.marginal_bound)))
        return [*facts, ("numerical error, subtracted", f"{self.numerical_error:.1e}")]

    def _grid(self) -> Grid | None:
        return tilted_grid(self.tilted)

    def __repr__(self) -> str:
        low, high = bracket_text(self.lower_bound, self.upper_bound)
        made = f"eta {self.eta:g}, {self.draws:,} draws" if self.draws else self.basis
        return f"Certificate([{low}, {high}], delta {self.delta:g}, {made})"

    def to_json(self) -> str:
        """Return the whole certificate as JSON text."""
        content = to_plain(self) | {
            "format": FORMAT,
            "sentence": self.sentence,
            "assumptions": list(self.assumptions),
            "warnings": list(self.warnings),
            "notes": list(self.notes),
        }
        return json.dumps(content, indent=2, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """Read a certificate from JSON text, in this format or in format 1."""
        try:
            content = json.loads(text)
        except json.JSONDecodeError as problem:
            raise ValueError(f"this is not a certificate: {problem}.") from None
        if not isinstance(content, dict) or content.get("format") not in (1, FORMAT):
            raise ValueError(f"this is not a certificate of format 1 or {FORMAT}.")
        if content["format"] == 1:
            content = _from_format_1(content)
        content = {"tilted": [], "starts": None} | content  # fields newer than the format
        names = kept_fields(cls)
        missing = [name for name in names if name not in content]
        if missing:
            raise ValueError(f"the certificate lacks {', '.join(sorted(missing))}.")
        hints = get_type_hints(cls)
        return cls(**{name: _field(name, hints[name], content[name]) for name in names})

    def save(self, path: str | Path) -> None:
        """Write the certificate as JSON; the file appears whole or not at all."""
        with replacing(path, "w", encoding="utf-8") as file:
            file.write(self.to_json() + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Certificate:
        """Read a certificate from a JSON file."""
        return cls.from_json(Path(path).read_text(encoding="utf-8"))


def _field(name: str, wanted: Any, value: Any) -> Any:
    try:
        return from_plain(wanted, value)
    except ValueError:
        raise ValueError(f"the certificate's {name} cannot be {value!r}.") from None


def _from_format_1(content: dict[str, Any]) -> dict[str, Any]:
    """Convert what version 0.1 wrote to format 2: of its findings only the sentences are known.

    Its comparison with the log is left out: it counted the penalty for the unseen as a gain.
    """
    later = ("split", "curse", "behaviour", "gain", "backtest", "doubt", "horizon", "unit")
    unknown = dict.fromkeys((*later, "stream", "discount"))
    levels = {"assumptions": "assumption", "warnings": "warning", "notes": "note"}
    found = [
        Finding.of("stopped_early") if text == EARLY_IN_FORMAT_1 else stated(text, level)
        for name, level in levels.items()
        for text in map(str, content.get(name, ()))
    ]
    return unknown | content | {"findings": [to_plain(one) for one in found]}
