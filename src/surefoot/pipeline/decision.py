"""What a run advises in one state, and the facts behind the advice."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot._display import Shown, number_of
from surefoot._rounding import near_text
from surefoot.data.counts import Counts
from surefoot.data.side_files import label_text
from surefoot.data.step_layers import names_of, step_of
from surefoot.pipeline.model import Model
from surefoot.pipeline.state_names import StateNames, plain_label
from surefoot.report.tables import PolicyLine

NEVER_SEEN, NEVER_LEFT, ENDS, NO_NUMBER = "never seen", "never left", "ends", "no number"
"""Why there is no advice: the log does not have the state, or not what was done there, or episodes
end there; or a measurement is not a number."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Decision(Shown):
    """What to do in one state.

    Attributes
    ----------
    state, step
        The state asked about, value by column; the step, if the policy depends on it.
    action
        The label of the action to take; None if the run has no advice.
    probability
        The probability of the action: 1 unless the policy is randomised, then that of its likeliest
        action.
    visits
        How often the log shows this action in this state.
    margin
        How much better it is in the nominal model than taking the best other action just once.
        Negative: the price of caution. None if there is no other action.
    habit, share
        The action taken most often in this state of the log, and its share of the visits.
    reason
        Why there is no advice: "never seen", "never left" (the log does not say, or not often
        enough, what was done there), "ends" (episodes end there) or "no number" (a measurement is
        not a number); "" if there is advice.
    hint
        For a state never seen: which of its values the log does know, in words.
    certified
        Whether the promise of the run stands: False if a failed check withdrew it.

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
    step: int | None = None

    @property
    def known(self) -> bool:
        """Whether the run has advice for this state."""
        return not self.reason

    @property
    def place(self) -> str:
        """The state in words; the name of a bin already contains its column."""
        texts = [(f"{column} ", str(value)) for column, value in self.state.items()]
        parts = [value if value.startswith(name) else name + value for name, value in texts]
        return ", ".join(parts if self.step is None else [*parts, f"step {self.step}"])

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
        steps = {} if self.step is None else {"step": self.step}
        return {
            "state": {name: plain_label(value) for name, value in self.state.items()},
            **steps,
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
    NEVER_SEEN: "the log never shows this state, so the run has no advice for it.",
    NEVER_LEFT: "the log shows this state, but not, or not often enough, what was done there: the "
    "run has no advice for it.",
    ENDS: "nothing to decide, episodes end here.",
    NO_NUMBER: "no advice, because a measurement is missing or not a number.",
}


def _places(model: Model) -> list[NDArray[np.int64]]:
    """Return the states of the log that each name of a state stands for."""
    size, labels = model.counts.num_states, model.counts.state_labels
    if not model.settings.by_step or labels is None:
        return [np.array([state]) for state in range(size)]
    names, which = names_of(labels)
    return [np.flatnonzero(which == i) for i in range(len(names))]


def _at(lines: Sequence[PolicyLine], step: int | None) -> PolicyLine | None:
    """Return the line of a state for a step, or its only line; None if there is none."""
    if step is None and len(lines) > 1:
        raise ValueError("what to do in this state depends on the step: say which with step=.")
    for line in lines:
        first, last = line.first_step, line.last_step
        if step is None or first is None or last is None or first <= step <= last:
            return line
    return None


@dataclass(frozen=True, kw_only=True, eq=False)
class Advice:
    """The advice of a policy, ready for questions about many states.

    Attributes
    ----------
    names
        The states of the log.
    lines
        The policy by the label of the state: one line, or one for every range of steps; the
        likeliest action if it is randomised.
    counts
        The counts of the log, for its habits.
    places
        The states of the log that each name stands for: one, or one for each step.
    certified
        Whether the promise about the policy stands.
    """

    names: StateNames
    lines: dict[Hashable, list[PolicyLine]]
    counts: Counts
    certified: bool
    places: list[NDArray[np.int64]]

    @classmethod
    def of(cls, model: Model, policy: Sequence[PolicyLine], *, certified: bool) -> Advice:
        """Return the advice of a policy for the states of a model."""
        likeliest: dict[Hashable, dict[int, PolicyLine]] = {}
        for line in sorted(policy, key=lambda line: line.probability):
            likeliest.setdefault(line.state, {})[line.first_step or 0] = line
        return cls(
            names=StateNames.of(model.settings, model.counts, model.bins),
            lines={s: [own[first] for first in sorted(own)] for s, own in likeliest.items()},
            counts=model.counts,
            places=_places(model),
            certified=certified,
        )

    @property
    def by_steps(self) -> bool:
        """Whether what to do depends on the step."""
        return any(len(own) > 1 or own[0].first_step for own in self.lines.values())

    def on(self, given: Any, step: int | None = None) -> Decision:
        """Return what to do in a state; ``step`` (from 0) is for policies that depend on it."""
        self._check_step(step)
        names = self.names
        asked = names.asked(given)
        state = names.find(asked)
        if state is None:
            return self._without(asked, NEVER_SEEN, names.hint(asked))
        places = self._places(state, step)
        if len(places) == 0:
            return self._without(asked, NEVER_SEEN, f"It does at other steps than {step}.")
        habit, share = self._habit(places)
        line = _at(self.lines.get(names.label(state), []), step)
        if line is None:
            ends = bool(self.counts.is_terminal[places].all())
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
            step=step,
        )

    def _check_step(self, step: int | None) -> None:
        """Refuse a step outside the policy's range, or for a policy that ignores the step."""
        if step is None:
            return
        lines = [line for some in self.lines.values() for line in some]
        if all(line.first_step is None for line in lines):
            raise ValueError(f"step={step}, but the policy of this run is the same at every step.")
        last = max(line.last_step or 0 for line in lines)
        if not 0 <= step <= last:
            raise ValueError(f"step={step}; this run counts the steps 0 to {last}.")

    def _without(self, values: tuple[Hashable, ...], reason: str, hint: str = "") -> Decision:
        state = dict(zip(self.names.columns, values, strict=True))
        return Decision(state=state, reason=reason, hint=hint, certified=self.certified)

    def _places(self, state: int, step: int | None) -> NDArray[np.int64]:
        """Return the states of the log that a name stands for at a step."""
        places, labels = self.places[state], self.counts.state_labels
        if len(places) == 1 or step is None or labels is None:
            return places
        return np.array([s for s in places if step_of(labels[s]) == step], dtype=np.int64)

    def _habit(self, places: NDArray[np.int64]) -> tuple[Hashable, float | None]:
        """Return the action taken most often in a state of the log, and its share of the visits."""
        counts = self.counts
        ends = [np.searchsorted(counts.row_state, [state, state + 1]) for state in places]
        here = np.concatenate([np.arange(*pair) for pair in ends] or [np.zeros(0, np.int64)])
        tried = np.bincount(counts.row_action[here], counts.visits[here], counts.num_actions)
        if not tried.sum() > 0:
            return None, None
        action = most = int(tried.argmax())
        label = action if counts.action_labels is None else counts.action_labels[action]
        return label, float(tried[most] / tried.sum())
