"""Whether a promise still agrees with data collected after it was made.

A policy pi was promised the return L; in its model it has the values v, the action values q and the
return V. Let ``x = r + gamma v(s') - q(s, a)`` for a step that pi would take. If E[x] >= -c in
every state, with ``c = (V - L) / sum_t gamma^t``, the return of pi is at least L. Over a horizon, v
and q depend on the step t, and x is an average over the steps at which pi would take the action,
with weights fixed by the model: if E[x_t] >= -c at each of these steps, the same holds for their
average. The test bets against the new steps: if every one of them has a mean of -c or more, the
probability that the evidence ever reaches 100 is at most 0.01, however often one looks
(`anytime_evidence`). Steps that pi would not take are not used.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot._display import Shown
from surefoot._findings import Finding
from surefoot.certificates.bets import anytime_evidence

ALARM = 0.01
"""The largest probability with which a promise that holds is ever called into question."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, repr=False)
class Agreement(Shown):
    """What new data say about a promise.

    Attributes
    ----------
    agrees
        Whether the new data are consistent with the promise.
    steps, transitions
        How many of the new transitions are steps of the policy, and how many there are in all.
    shortfall
        How much less than expected the policy's steps brought on average (negative: more).
    bearable
        c: the shortfall per step that the promise can bear.
    evidence
        The evidence against the promise; 1/level is an alarm.
    level
        An upper bound on the probability of a false alarm, however often one looks.
    objective
        ``"max"`` for rewards, ``"min"`` for costs.
    unknown
        How many of the new transitions have a state or an action that the run does not know.
    """

    agrees: bool
    steps: int
    transitions: int
    shortfall: float | None
    bearable: float
    evidence: float
    level: float = ALARM
    objective: str = "max"
    unknown: int = 0

    @property
    def finding(self) -> Finding:
        """The result as a finding."""
        if self.shortfall is None:
            return Finding.of("new_data_silent", transitions=self.transitions, unknown=self.unknown)
        code = "new_data_agree" if self.agrees else "new_data_disagree"
        return Finding.of(
            code, steps=self.steps, transitions=self.transitions, short=self.shortfall,
            bearable=self.bearable, evidence=self.evidence, unknown=self.unknown,
            objective=self.objective,
        )  # fmt: skip

    @property
    def message(self) -> str:
        """The result in words."""
        return self.finding.text

    def _headline(self) -> str:
        return self.message

    def __repr__(self) -> str:
        return f"Agreement({self.agrees}, {self.steps:,} steps, evidence {self.evidence:.3g})"


def weigh_steps(
    x: ArrayLike, ceiling: ArrayLike, count: ArrayLike, *,
    bearable: float, transitions: int, highest: float | None = None, objective: str = "max",
) -> Agreement:  # fmt: skip
    """Test the promise against the policy's steps in new data.

    Parameters
    ----------
    x
        ``(n,)``: ``r + gamma v(s') - q(s, a)`` of each kind of step.
    ceiling
        ``(n,)``: the largest possible x of each kind.
    count
        ``(n,)``: how often each kind occurred.
    bearable
        c: how much less than expected a step may bring on average.
    transitions
        The number of new transitions in all.
    highest
        The largest ceiling of all kinds of steps that may occur: it sets the size of the bets,
        which must not depend on what occurred. None: that of the kinds given.

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
    scale = float(most.max()) if highest is None else highest + margin
    if not scale > 0:  # every step and its reward are certain
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
