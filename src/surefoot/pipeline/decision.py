"""What a run says to do in one state, and what stands behind it."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot._display import Shown, number_of
from surefoot._rounding import near_text
from surefoot.data.counts import Counts
from surefoot.data.side_files import label_text
from surefoot.pipeline.model import Model
from surefoot.pipeline.state_names import StateNames, plain_label
from surefoot.report.tables import PolicyLine

NEVER_SEEN, NEVER_LEFT, ENDS, NO_NUMBER = "never seen", "never left", "ends", "no number"
"""Why there is no action: the log lacks the state, lacks what was done there, or ended there; or
a measurement is none."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Decision(Shown):
    """What to do in one state.

    Attributes
    ----------
    state
        The state asked about: value by column.
    action
        What to do, by its label; None where the run has no advice.
    probability
        How often to do it: 1 unless the policy is randomised, else that of its likeliest action.
    visits
        How often the log shows this action in this state.
    margin
        How much better it is than the best other action, if only this once the other one were
        taken, in the nominal model. Negative: caution has this price. None without another action.
    habit, share
        What was done most often in this state of the log, and in which share of its visits.
    reason
        Why there is no advice: "never seen", "never left" (the log does not say, or not often
        enough, what was done there), "ends" (an episode is over there) or "no number" (a
        measurement is none); "" where there is.
    hint
        For a state never seen: what of it the log does know, in words.
    certified
        Whether the promise of the run stands: False where a check of the log took it back.

    Examples
    --------
    >>> one = Decision(state={"wear": 4}, action="repair", visits=127, habit="run", share=0.6)
    >>> print(one.sentence)
    wear 4: repair. Tried 127 times in this state. In the log mostly run (60%).
    >>> one.known
    True
    """

    state: Mapping[str, Hashable]
    action: Hashable = None
    probability: float | None = None
    visits: float = 0
    margin: float | None = None
    habit: Hashable = None
    share: float | None = None
    reason: str = ""
    hint: str = ""
    certified: bool = True

    @property
    def known(self) -> bool:
        """Whether the run has advice for this state."""
        return not self.reason

    @property
    def place(self) -> str:
        """The state in words; the name of a bin names its column already."""
        texts = [(f"{column} ", str(value)) for column, value in self.state.items()]
        return ", ".join(value if value.startswith(name) else name + value for name, value in texts)

    @property
    def sentence(self) -> str:
        """The answer in words."""
        if self.reason:
            return f"{self.place}: {_WITHOUT[self.reason]}{f' {self.hint}' if self.hint else ''}"
        said = [f"{self.place}: {label_text(self.action)}.", self._tried()]
        if self.margin is not None:
            said.append(self._margin(self.margin))
        if self.habit is not None and self.share is not None:
            usual = "also" if self.habit == self.action else "mostly"
            said.append(f"In the log {usual} {label_text(self.habit)} ({self.share:.0%}).")
        return " ".join(said)

    def _tried(self) -> str:
        if self.visits == 0:
            return "Never tried in this state."
        return f"Tried {number_of(self.visits, 'time')} in this state."

    def _margin(self, margin: float) -> str:
        if margin < 0:
            return f"Caution costs {near_text(-margin, 4)} here, by the model's mean."
        return f"Better than the next best by {near_text(margin, 4)}, by the model's mean."

    def _headline(self) -> str:
        return self.sentence

    def __repr__(self) -> str:
        answer = repr(self.action) if self.known else f"none, {self.reason}"
        return f"Decision({self.place!r}: {answer})"

    def to_mapping(self) -> dict[str, Any]:
        """Return the answer as plain values."""
        return {
            "state": {name: plain_label(value) for name, value in self.state.items()},
            "known": self.known,
            "action": plain_label(self.action),
            "probability": self.probability,
            "visits": self.visits,
            "margin": self.margin,
            "habit": plain_label(self.habit),
            "habit_share": self.share,
            "reason": self.reason or None,
            "certified": self.certified,
        }


_WITHOUT = {
    NEVER_SEEN: "the log never shows this state, so that the run has no advice for it.",
    NEVER_LEFT: "the log shows this state, but not, or not often enough, what was done there: the "
    "run has no advice for it.",
    ENDS: "nothing to decide, episodes end here.",
    NO_NUMBER: "no advice, for a measurement is missing.",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Advice:
    """What a policy says, ready to be asked about many states.

    Attributes
    ----------
    names
        The states of the log.
    lines
        The policy by the label of the state: one line, or one for every range of steps; the
        likeliest action where it is randomised.
    counts
        The log, for its habits.
    certified
        Whether the promise about the policy stands.
    """

    names: StateNames
    lines: dict[Hashable, list[PolicyLine]]
    counts: Counts
    certified: bool

    @classmethod
    def of(cls, model: Model, policy: Sequence[PolicyLine], *, certified: bool) -> "Advice":
        """Return the advice of a policy for the states of a model."""
        likeliest: dict[Hashable, dict[int | None, PolicyLine]] = {}
        for line in sorted(policy, key=lambda line: line.probability):
            likeliest.setdefault(line.state, {})[steps_of(line)[0]] = line
        return cls(
            names=StateNames.of(model.settings, model.counts, model.bins),
            lines={state: list(found.values()) for state, found in likeliest.items()},
            counts=model.counts,
            certified=certified,
        )

    def on(self, given: Any, step: int | None = None) -> Decision:
        """Return what to do in a state; ``step`` is for policies that depend on it."""
        self._check_step(step)
        names = self.names
        asked = names.asked(given)
        state = names.find(asked)
        if state is None:
            return self._without(asked, NEVER_SEEN, names.hint(asked))
        habit, share = self._habit(state)
        line = _at(self.lines.get(names.label(state), []), step)
        if line is None:
            ends = bool(self.counts.is_terminal[state])
            return self._without(names.parts(state), ENDS if ends else NEVER_LEFT)
        return Decision(
            state=dict(zip(names.columns, names.parts(state), strict=True)),
            action=line.action,
            probability=line.probability,
            visits=line.visits,
            margin=line.margin,
            habit=habit,
            share=share,
            certified=self.certified,
        )

    def _check_step(self, step: int | None) -> None:
        """Refuse a step that the policy does not know, or does not care about."""
        if step is None:
            return
        last = max((steps_of(some[-1])[1] or 0 for some in self.lines.values()), default=0)
        if all(steps_of(line)[0] is None for some in self.lines.values() for line in some):
            raise ValueError(f"step={step}, but the policy of this run is the same at every step.")
        if not 0 <= step <= last:
            raise ValueError(f"step={step}; this run counts the steps 0 to {last}.")

    def _without(self, values: tuple[Hashable, ...], reason: str, hint: str = "") -> Decision:
        state = dict(zip(self.names.columns, values, strict=True))
        return Decision(state=state, reason=reason, hint=hint, certified=self.certified)

    def _habit(self, state: int) -> tuple[Hashable, float | None]:
        """Return what the log did most often in a state, and in which share of its visits."""
        counts = self.counts
        first, last = np.searchsorted(counts.row_state, [state, state + 1])
        tried = counts.visits[first:last]
        if not tried.sum() > 0:
            return None, None
        most = int(tried.argmax())
        action = int(counts.row_action[first + most])
        label = action if counts.action_labels is None else counts.action_labels[action]
        return label, float(tried[most] / tried.sum())


def steps_of(line: PolicyLine) -> tuple[int | None, int | None]:
    """Return the first and the last step of a line; (None, None) where steps do not matter."""
    return getattr(line, "first_step", None), getattr(line, "last_step", None)


def _at(lines: Sequence[PolicyLine], step: int | None) -> PolicyLine | None:
    """Return the line of a state for a step, or its only one; None where there is none."""
    if step is None and len(lines) > 1:
        raise ValueError("what to do in this state depends on the step: say which with step=.")
    for line in lines:
        first, last = steps_of(line)
        if step is None or first is None or last is None or first <= step <= last:
            return line
    return None
