"""Whether a promise still agrees with data that came after it.

A policy pi was promised the return L; in its model it has the values v and action values q, and the
return V. Let ``x = r + gamma v(s') - q(s, a)`` for a step that pi would take. If E[x] >= -c in
every state, with ``c = (V - L) / sum_t gamma^t``, the return of pi is at least L. Over a horizon v
and q depend on the step t, and x is an average over the steps at which pi would take it, with
weights that the model fixes: if E[x_t] >= -c at all of them, so is its mean. So the new steps are
bet against: if each of them has a mean of -c or more, the evidence ever reaches 100 with
probability at most 0.01, however often one looks (`anytime_evidence`). Steps that pi would not take
say nothing.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot._display import Shown
from surefoot._findings import Finding
from surefoot.certificates.bets import anytime_evidence

ALARM = 0.01
"""How often, at most, a promise that holds is ever called into question."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, repr=False)
class Agreement(Shown):
    """What new data say about a promise.

    Attributes
    ----------
    agrees
        Whether they are in keeping with it.
    steps, transitions
        How many of the new transitions are steps of the policy, and how many there are.
    shortfall
        How much less than expected they brought on average (negative: more).
    bearable
        How much less the promise can bear.
    evidence
        The evidence against it; 1/level is an alarm.
    level
        The probability, at most, of a false alarm, however often one looks.
    objective
        ``"max"`` for rewards, ``"min"`` for costs.
    """

    agrees: bool
    steps: int
    transitions: int
    shortfall: float | None
    bearable: float
    evidence: float
    level: float = ALARM
    objective: str = "max"

    @property
    def finding(self) -> Finding:
        """The same as a finding."""
        if self.shortfall is None:
            return Finding.of("new_data_silent", transitions=self.transitions)
        code = "new_data_agree" if self.agrees else "new_data_disagree"
        return Finding.of(
            code, steps=self.steps, transitions=self.transitions, short=self.shortfall,
            bearable=self.bearable, evidence=self.evidence, objective=self.objective,
        )  # fmt: skip

    @property
    def message(self) -> str:
        """What was found, for people."""
        return self.finding.text

    def _headline(self) -> str:
        return self.message

    def __repr__(self) -> str:
        return f"Agreement({self.agrees}, {self.steps:,} steps, evidence {self.evidence:.3g})"


def weigh_steps(
    x: ArrayLike, ceiling: ArrayLike, count: ArrayLike, *,
    bearable: float, transitions: int, objective: str = "max",
) -> Agreement:  # fmt: skip
    """Weigh the policy's steps in new data against the promise.

    Parameters
    ----------
    x
        ``(n,)``: ``r + gamma v(s') - q(s, a)`` of each kind of step.
    ceiling
        ``(n,)``: the most that x can be there.
    count
        ``(n,)``: how often.
    bearable
        c: how much less than expected a step may bring.
    transitions
        How many new transitions there were in all.

    Examples
    --------
    >>> steps = np.random.default_rng(0).choice([-1.0, 1.0], 300)
    >>> weigh_steps(steps, 0 * steps + 1, 0 * steps + 1, bearable=0.1, transitions=300).agrees
    True
    >>> weigh_steps(steps - 0.8, 0 * steps + 1, 0 * steps + 1, bearable=0.1, transitions=300).agrees
    False
    """
    gain, top, often = (np.asarray(one, dtype=np.float64) for one in (x, ceiling, count))
    total = float(often.sum())
    margin = max(bearable, 0.0)
    if total == 0:
        return Agreement(
            agrees=True, steps=0, transitions=transitions, shortfall=None, bearable=margin,
            evidence=1.0, objective=objective,
        )  # fmt: skip
    most = top + margin
    scale = float(most.max())
    if not scale > 0:  # every step is certain, and so is what it brings
        scale = max(float(np.abs(gain).max()), 1.0)
    tiny = 1e-9 * scale
    value = np.maximum(top - gain, 0.0)
    log = anytime_evidence(value, np.maximum(most, tiny), often, scale)
    evidence = float(np.exp(min(log, 700.0)))
    return Agreement(
        agrees=evidence < 1 / ALARM, steps=int(total), transitions=transitions,
        shortfall=-float(often @ gain) / total, bearable=margin, evidence=evidence,
        objective=objective,
    )  # fmt: skip
