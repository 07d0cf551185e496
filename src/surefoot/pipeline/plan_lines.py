"""The lines of a plan: rows, episodes, forecasts, a target, questions, unused rows."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from surefoot.certificates.allocation import Distance
from surefoot.certificates.exploration import Exploration
from surefoot.certificates.questions import Question
from surefoot.certificates.row_doubt import RowDoubt
from surefoot.data.side_files import label_text
from surefoot.data.step_layers import step_of, without_step
from surefoot.pipeline.model import Model
from surefoot.pipeline.schemes import EpisodePlan

LEVEL = 0.05
"""The share of futures that an interval leaves out on each side."""
STRETCH = 1.4
"""The factor by which intervals are stretched around the median of the simulated futures.

Truths are drawn from a posterior that is itself in doubt, and the prior that rows share is not
learned again: as simulated, intervals of 90% held 77% of 247 promises that real data led to;
stretched by this factor, which was chosen on the same promises, they held 88%. `python -m
surefoot.studies planning` counts it on others.
"""


@dataclass(frozen=True, kw_only=True)
class PlanLine:
    """A row that the policy plays, and what more tries of it are worth.

    Attributes
    ----------
    state, action
        The labels of the row.
    step
        The step of the state, if states are kept apart by step.
    visits
        How often the row was tried.
    share
        Its share of the variance of the return.
    amount
        How far it moves the promise away from the averages of the log, to first order and over all
        causes; ``transitions``, ``unseen`` and ``rewards`` are its parts.
    tries
        How many of the samples it should get.
    """

    state: Hashable
    action: Hashable
    step: int | None
    visits: float
    share: float
    amount: float
    transitions: float
    unseen: float
    rewards: float
    tries: int


@dataclass(frozen=True, kw_only=True)
class EpisodeLine:
    """How many episodes of one kind to collect, from ``start`` (None: from the usual first states).

    ``behaviour`` is ``"policy"`` or ``"habits"``, ``steps`` about how many steps they have in all.
    """

    start: Hashable | None
    behaviour: str
    episodes: int
    steps: float


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """The promise after more samples: its mean, and an interval that should hold 90% of them.

    ``way`` is ``"tries"`` or ``"episodes"`` (as planned), ``"same"`` (as the log did) or
    ``"explore"`` (tries of rows that the policy does not use).
    """

    way: str
    samples: int
    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, way: str, samples: int, promises: Sequence[float], sign: float) -> "Forecast":
        """Return the forecast of simulated promises; ``sign`` -1 turns rewards into costs.

        Examples
        --------
        >>> found = Forecast.of("tries", 10, list(range(19)), 1.0)
        >>> round(found.low, 9), found.mean, round(found.high, 9)
        (-3.6, 9.0, 21.6)
        """
        found = np.sort(sign * np.asarray(promises, dtype=np.float64))
        # The rank of the real future among n simulated ones is uniformly distributed.
        cut = max(1, int(LEVEL * (len(found) + 1)))
        middle = float(np.median(found))
        low, high = (middle + STRETCH * (float(found[at]) - middle) for at in (cut - 1, -cut))
        return cls(way=way, samples=samples, mean=float(found.mean()), low=low, high=high)


@dataclass(frozen=True, kw_only=True)
class Target:
    """A wanted promise.

    Attributes
    ----------
    wanted
        The wanted promise.
    samples
        How many samples are expected to lead to it; 0 if it is already promised, None if it is out
        of reach.
    most, reached
        The largest number of samples that was simulated, and the promise expected then.
    chance
        The posterior probability that the policy really earns as much: no data could show more.
    """

    wanted: float
    samples: int | None
    most: int
    reached: float
    chance: float


@dataclass(frozen=True, kw_only=True)
class UnusedLine:
    """A row that the policy does not use.

    ``chance`` is the probability that knowing the row would change the policy, ``value`` the
    expected gain in return if the row were known exactly.
    """

    state: Hashable
    action: Hashable
    step: int | None
    visits: float
    chance: float
    value: float


@dataclass(frozen=True, kw_only=True)
class QuestionLine:
    """A question to an expert, in words, with the promise after the expected answer."""

    kind: str
    question: str
    expected: str
    gain: float
    promise: float


def place_of(model: Model, row: int) -> tuple[Hashable, Hashable, int | None]:
    """Return state, action and step of a row."""
    mdp = model.mdp
    state = state_label(model, int(mdp.row_state[row]))
    action = int(mdp.row_action[row])
    named: Hashable = action if mdp.action_labels is None else mdp.action_labels[action]
    if model.settings.by_step:
        return without_step(state), named, step_of(state)
    return state, named, None


def state_label(model: Model, state: int) -> Hashable:
    """Return the label of a state in the log, or its id."""
    labels = model.mdp.state_labels
    return state if labels is None else labels[state]


def plan_lines(model: Model, doubt: RowDoubt, samples: int) -> tuple[PlanLine, ...]:
    """Return the rows of the policy, most tries first, then by how far they move the promise."""
    tries = Distance.of(doubt).allocate(samples)
    amounts, total = doubt.amounts, doubt.amount
    order = np.lexsort((-total, -tries))
    found = []
    for k in order.tolist():
        row = int(doubt.rows[k])
        if model.passive[model.mdp.row_state[row]]:
            continue
        state, action, step = place_of(model, row)
        found.append(
            PlanLine(
                state=state, action=action, step=step,
                visits=float(model.placed.visits[row]),
                share=float(doubt.share[k]), amount=float(total[k]),
                **{name: float(values[k]) for name, values in amounts.items()},
                tries=int(tries[k]),
            )
        )  # fmt: skip
    return tuple(found)


def episode_lines(plan: EpisodePlan, doubt: RowDoubt, samples: int) -> tuple[EpisodeLine, ...]:
    """Return which episodes to collect, most of them first."""
    number = plan.allocate(doubt, samples)
    length = plan.shown.sum(axis=1)
    lines = [
        EpisodeLine(
            start=None if kind.start is None else state_label(plan.model, kind.start),
            behaviour=kind.behaviour, episodes=int(n), steps=float(n * each),
        )
        for kind, n, each in zip(plan.kinds, number, length, strict=True)
        if n > 0
    ]  # fmt: skip
    return tuple(sorted(lines, key=lambda line: -line.episodes))


def unused_lines(model: Model, found: Exploration, most: int) -> tuple[UnusedLine, ...]:
    """Return the rows most worth exploring, at most ``most`` of them."""
    lines: list[UnusedLine] = []
    for row, chance, value in zip(found.rows.tolist(), found.chance, found.value, strict=True):
        if len(lines) == most or not value > 0:
            break
        state, action, step = place_of(model, row)
        lines.append(
            UnusedLine(
                state=state, action=action, step=step, visits=float(model.placed.visits[row]),
                chance=float(chance), value=float(value),
            )
        )  # fmt: skip
    return tuple(lines)


def target_of(
    wanted: float, promise: float, forecasts: Sequence[Forecast], chance: float, sign: float
) -> Target:
    """Return how many samples a wanted promise takes, interpolated between the simulated sizes.

    Between two sizes the expected promise is taken as linear in the logarithm of the samples.

    Examples
    --------
    >>> found = [Forecast(way="tries", samples=n, mean=m, low=m, high=m) for n, m in
    ...          ((10, 5.0), (100, 6.0), (1000, 6.5))]
    >>> target_of(5.5, 4.0, found, 0.9, 1.0).samples
    32
    >>> target_of(7.0, 4.0, found, 0.2, 1.0).samples is None
    True
    """
    sizes = np.array([0.0, *(np.log10(one.samples) for one in forecasts)])
    means = np.maximum.accumulate([sign * promise, *(sign * one.mean for one in forecasts)])
    samples: int | None = None
    if sign * wanted <= sign * promise:
        samples = 0
    elif sign * wanted <= means[-1]:
        after = int(np.argmax(means >= sign * wanted))
        part = (sign * wanted - means[after - 1]) / (means[after] - means[after - 1])
        samples = int(np.ceil(10 ** (sizes[after - 1] + part * (sizes[after] - sizes[after - 1]))))
    last = forecasts[-1] if forecasts else None
    return Target(
        wanted=wanted, samples=samples, most=0 if last is None else last.samples,
        reached=promise if last is None else sign * float(means[-1]), chance=chance,
    )  # fmt: skip


def question_line(model: Model, question: Question, promise: float, sign: float) -> QuestionLine:
    """Return a question in words."""
    asked, expected = _asked(model, question)
    return QuestionLine(
        kind=question.kind, question=asked, expected=expected, gain=question.gain,
        promise=promise + sign * question.gain,
    )  # fmt: skip


SHOWN = 5
"""How many successors a question names."""


def _asked(model: Model, one: Question) -> tuple[str, str]:
    brings, brought = ("cost", "cost") if model.settings.costs else ("bring", "brought")
    if one.row is None and one.kind == "reward":
        return (
            f"For every state and action of the policy: what does it {brings} on average?",
            f"what it {brought} in the log (declare it with --reward-table)",
        )
    if one.row is None:
        return (
            "For every state and action of the policy: can anything follow but what was seen?",
            "nothing else (declare the successors with --support)",
        )
    state, action, step = place_of(model, one.row)
    when = "" if step is None else f" at step {step}"
    here = f"'{label_text(action)}' in '{label_text(state)}'{when}"
    if one.kind == "transition" and one.successor is not None:
        to = label_text(state_label(model, one.successor))
        return (
            f"Can {here} lead to '{to}' at all?",
            f"no (never seen; taken as {_percent(one.mass)})",
        )
    if one.kind == "reward":
        return f"What does {here} {brings} on average?", f"what it {brought} in the log"
    mdp = model.mdp
    own = slice(*mdp.row_start[one.row : one.row + 2])
    seen = mdp.successor[own][model.placed.count[own] > 0]
    names = [f"'{label_text(state_label(model, int(s)))}'" for s in seen[:SHOWN]]
    more = f" and {len(seen) - SHOWN} more" if len(seen) > SHOWN else ""
    return (
        f"Can anything follow {here} but {', '.join(names)}{more}?",
        f"nothing else (taken as {_percent(one.mass)})",
    )


def _percent(share: float) -> str:
    return f"{100 * share:.2g}%"
