"""Whether following a plan raises the promise faster than other data, and whether forecasts hold.

Solves a log of a known world and makes a plan for it. Then collects data in the world itself in
three ways with the same number of steps: as planned, evenly, and as the log's own behaviour would.
For each, the promise is computed again from the log and the new data. Compared log by log, the plan
should give the highest promise, and that promise should lie in the forecast 90% interval.

Promises are those of a run with few draws and a short search: the posterior, the curse of choosing
and the first state as in `surefoot solve`, without the checks that cannot change them.
"""

import json
import time
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from scipy.stats import wilcoxon

from surefoot.certificates.allocation import Distance
from surefoot.certificates.certificate import Certificate
from surefoot.certificates.curse import curse_of_choosing
from surefoot.certificates.halves import LogBuckets
from surefoot.certificates.optimize import optimize
from surefoot.certificates.row_doubt import row_doubt
from surefoot.data.transitions import read_transitions
from surefoot.pipeline.deductions import for_first_state, lowered
from surefoot.pipeline.future import Future
from surefoot.pipeline.model import Model, build_model, column_roles
from surefoot.pipeline.outlook import TRIES
from surefoot.pipeline.parts import divide_log, log_of
from surefoot.pipeline.plan_lines import Forecast
from surefoot.pipeline.reward_ends import least_return
from surefoot.pipeline.schemes import (
    HABITS,
    EpisodePlan,
    PlannedEpisodes,
    Scheme,
    Tries,
)
from surefoot.pipeline.settings import Settings
from surefoot.studies.options import Replications, Seed
from surefoot.studies.table import markdown_table, number_text
from surefoot.studies.zoo.catalogue import WORLDS, make_world
from surefoot.studies.zoo.code_version import code_version
from surefoot.studies.zoo.logs import (
    ColumnArrays,
    greedy_shares,
    random_shares,
    trajectories,
    tries_of,
)
from surefoot.studies.zoo.truth import choice_of, shares_of
from surefoot.studies.zoo.worlds import Floats, Ints, World

PLAN, UNIFORM, SAME = "plan", "uniform", "same"
WAYS = (PLAN, UNIFORM, SAME)
"""How data are collected: as planned, evenly, or as the log's behaviour would."""
DRAWS, ETA, SEARCH_STEPS = 400, 0.01, 16
"""Settings of each promise."""
SIMULATED = 19
"""Simulated futures behind a 90% interval: the fewest that can give one."""
SURE = 0.01
"""The plan counts as better if the p-value is at most this."""
HELD = 0.85
"""The share of promises that must lie in their 90% intervals."""


@dataclass(frozen=True, kw_only=True)
class PlanCase:
    """A world, a log of it, and how many samples are added.

    Attributes
    ----------
    world
        Its name in the zoo.
    episodes, epsilon
        The log: this many episodes of a behaviour that takes any action with probability epsilon,
        otherwise an optimal one.
    whole
        Whether only whole episodes can be collected; otherwise the log and the plan are single
        tries.
    samples
        Transitions that are added.
    """

    world: str
    episodes: int
    epsilon: float
    whole: bool
    samples: int

    @property
    def log_text(self) -> str:
        """The log in a few words."""
        return f"{self.episodes} episodes, any action in {self.epsilon:.0%} of steps"


CASES = (
    PlanCase(world="riverswim", episodes=10, epsilon=0.5, whole=False, samples=100),
    PlanCase(world="machine", episodes=10, epsilon=0.5, whole=False, samples=100),
    PlanCase(world="garnet-.3", episodes=10, epsilon=1.0, whole=False, samples=200),
    PlanCase(world="epidemic", episodes=10, epsilon=0.5, whole=False, samples=200),
    PlanCase(world="survival", episodes=100, epsilon=0.5, whole=True, samples=400),
    PlanCase(world="frozen-lake-4x4", episodes=100, epsilon=0.5, whole=True, samples=1000),
)
"""Small worlds of both kinds; a replication takes seconds."""


class PlanOutcome(NamedTuple):
    """One log: the promise before and after each kind of new data, and the plan's forecast."""

    world: str
    replication: int
    seed: int
    before: float
    plan: float
    uniform: float
    same: float
    forecast: list[float]
    seconds: float

    @property
    def held(self) -> bool:
        """Whether the promise after the plan lies in its forecast interval."""
        found = Forecast.of(TRIES, 0, self.forecast, 1.0)
        return found.low <= self.plan <= found.high


class _FirstRun(NamedTuple):
    model: Model
    log: LogBuckets
    certificate: Certificate


def replicate(case: PlanCase, replication: int, seed: int) -> PlanOutcome:
    """Draw a log, make a plan, collect data in three ways, and compute the promises again."""
    began = time.perf_counter()
    world = make_world(case.world, replication + 1 if WORLDS[case.world].random else 0)
    entropy = [seed, zlib.crc32(case.world.encode()), replication]
    log_rng, plan_rng, *way_rngs = np.random.default_rng(entropy).spawn(2 + len(WAYS))
    habits = greedy_shares(world, case.epsilon)
    columns = _episodes(world, habits, None, case.episodes, log_rng)
    solved = _solve(case, world, columns, seed)
    model, policy = solved.model, solved.certificate.policy
    scheme, tries = _planned(case, solved, plan_rng)
    future = Future(model=model, certificate=solved.certificate, log=solved.log, seed=replication)
    forecast = []
    for rng in plan_rng.spawn(SIMULATED):
        truth = future.truth(rng)
        forecast.append(future.promise(scheme.data(truth, case.samples, rng), truth, rng))
    even = random_shares(world)
    played = shares_of(world, choice_of(policy, model.placed, model.mdp))
    planned = habits if _keeps_habits(case, scheme) else played
    after = {}
    for way, rng in zip(WAYS, way_rngs, strict=True):
        if way == SAME or case.whole:
            shares = {PLAN: planned, UNIFORM: even, SAME: habits}[way]
            more = _episodes(world, shares, case.samples, None, rng)
        else:
            rows = _rows(world, model, tries) if way == PLAN else _evenly(world, case.samples, rng)
            more = tries_of(world, rows, rng)
        after[way] = _solve(case, world, _joined(columns, more), seed).certificate.lower_bound
    return PlanOutcome(
        world=case.world, replication=replication, seed=seed,
        before=solved.certificate.lower_bound, **after, forecast=forecast,
        seconds=time.perf_counter() - began,
    )  # fmt: skip


def _planned(case: PlanCase, solved: _FirstRun, rng: np.random.Generator) -> tuple[Scheme, Ints]:
    """Return the plan, and for single tries how often to try each row of the model."""
    model, policy = solved.model, solved.certificate.policy
    doubt = row_doubt(model.posterior, model.mdp, policy, rng, delta=solved.certificate.delta)
    tries = np.zeros(model.mdp.num_rows, dtype=np.int64)
    if case.whole:
        episodes = EpisodePlan.of(model, policy)
        if episodes is None:
            raise ValueError("the log has no episodes.")
        return PlannedEpisodes(plan=episodes, doubt=doubt), tries
    distance = Distance.of(doubt)
    tries[doubt.rows] = distance.allocate(case.samples)
    return Tries(distance=distance, rows=doubt.rows), tries


def _keeps_habits(case: PlanCase, scheme: Scheme) -> bool:
    """Return whether most episodes of a plan follow the log's behaviour."""
    if not isinstance(scheme, PlannedEpisodes):
        return False
    number = scheme.plan.allocate(scheme.doubt, case.samples)
    most = scheme.plan.kinds[int(np.argmax(number))]
    return most.behaviour == HABITS


def _episodes(
    world: World, shares: Floats, samples: int | None, episodes: int | None,
    rng: np.random.Generator,
) -> ColumnArrays:  # fmt: skip
    """Return the given number of episodes, or as many whole ones as reach ``samples`` steps."""
    if episodes is not None:
        return trajectories(world, shares, episodes, rng).columns
    wanted = samples or 1
    found = trajectories(world, shares, wanted, rng).columns  # each has at least one step
    last = int(found["episode"][min(wanted, len(found["episode"])) - 1])
    return {name: column[found["episode"] <= last] for name, column in found.items()}


def _evenly(world: World, samples: int, rng: np.random.Generator) -> Ints:
    """Return rows of the world, each equally often; the remainder at random."""
    rows = np.flatnonzero(~world.terminal[world.mdp.row_state])
    whole = np.repeat(rows, samples // len(rows))
    return np.concatenate((whole, rng.choice(rows, samples - len(whole), replace=False)))


def _rows(world: World, model: Model, tries: Ints) -> Ints:
    """Return the rows of the world that a plan tries, repeated once per try."""
    states = {label: i for i, label in enumerate(world.labels)}
    actions = {label: i for i, label in enumerate(world.actions)}
    mdp = world.mdp
    own = {(s, a): r for r, (s, a) in enumerate(zip(mdp.row_state, mdp.row_action, strict=True))}
    labels, names = model.mdp.state_labels or (), model.mdp.action_labels or ()
    found = [
        own[states[labels[model.mdp.row_state[row]]], actions[names[model.mdp.row_action[row]]]]
        for row in np.flatnonzero(tries)
    ]
    return np.repeat(np.array(found, dtype=np.int64), tries[tries > 0])


def _joined(columns: ColumnArrays, more: ColumnArrays) -> ColumnArrays:
    """Return two logs as one; the episodes of the second get new numbers."""
    made = dict(more)
    if "episode" in made:
        made["episode"] = made["episode"] + columns["episode"].max() + 1
    return {name: np.concatenate((columns[name], made[name])) for name in made}


def _solve(case: PlanCase, world: World, columns: ColumnArrays, seed: int) -> _FirstRun:
    """Return the model, the log in parts and the promise, as a run makes them."""
    if not case.whole:
        columns = {k: v for k, v in columns.items() if k not in ("episode", "step")}
    settings = Settings(
        discount=world.mdp.discount, seed=seed, terminal="terminal", draws=DRAWS, eta=ETA,
        episode="episode" if case.whole else None, step="step" if case.whole else None,
    )  # fmt: skip
    counts = read_transitions(columns, **column_roles(settings))
    first = None
    if not case.whole:
        known = dict(zip(world.labels, world.mdp.initial.tolist(), strict=True))
        first = np.array([known.get(label, 0.0) for label in counts.state_labels or ()])
        first = first / first.sum()
    model = build_model(settings, counts, first)
    log = log_of(model, divide_log(settings, counts, (columns,)).buckets)
    if log is None:
        raise ValueError("the log cannot be divided.")
    made = optimize(
        model.choosing, model.mdp, delta=settings.delta, eta=ETA, draws=DRAWS,
        steps=SEARCH_STEPS, rng=np.random.default_rng([seed, 3]), holdout=model.posterior,
        keep_usual=True,
    ).certificate  # fmt: skip
    curse = curse_of_choosing(log, np.asarray(made.policy, dtype=np.int64), seed=seed)
    made = for_first_state(model, lowered(made, curse, least_return(model)))
    return _FirstRun(model=model, log=log, certificate=made)


def records_file(folder: Path) -> Path:
    """Return the file of this code version's outcomes in a folder; it need not exist yet."""
    return folder / f"planning-{code_version()}.jsonl"


def read_outcomes(file: Path) -> list[PlanOutcome]:
    """Return the outcomes in a file; an incomplete last line is ignored."""
    if not file.exists():
        return []
    lines = file.read_text(encoding="utf-8").split("\n")[:-1]
    return [PlanOutcome(**json.loads(line)) for line in lines]


def study(
    cases: Sequence[PlanCase], replications: int, seed: int, folder: Path, seconds: float | None
) -> list[PlanOutcome]:
    """Run the missing replications, alternating between cases, until the time is up."""
    folder.mkdir(parents=True, exist_ok=True)
    file = records_file(folder)
    found = read_outcomes(file)
    done = {(one.world, one.replication, one.seed) for one in found}
    began = time.perf_counter()
    with file.open("a", encoding="utf-8") as lines:
        for turn in range(replications):
            for case in cases:
                if (case.world, turn, seed) in done:
                    continue
                if seconds is not None and time.perf_counter() - began > seconds:
                    return found
                found.append(replicate(case, turn, seed))
                lines.write(json.dumps(found[-1]._asdict()) + "\n")
                lines.flush()
    return found


HEAD = ("world", "log", "samples", "logs", "before", "plan", "even", "same", "p even", "p same",
        "in interval")  # fmt: skip


def rows_of(cases: Iterable[PlanCase], found: Sequence[PlanOutcome]) -> list[tuple[str, ...]]:
    """Return the table: mean promises, p-values of the plan, and how often intervals held."""
    rows = []
    for case in cases:
        own = [one for one in found if one.world == case.world]
        if not own:
            continue
        means = [np.mean([getattr(one, name) for one in own]) for name in ("before", *WAYS)]
        chances = [p_value(own, other) for other in (UNIFORM, SAME)]
        held = sum(one.held for one in own)
        kind = "episodes" if case.whole else "tries"
        rows.append(
            (
                case.world, case.log_text, f"{case.samples} ({kind})", f"{len(own)}",
                *(number_text(float(mean)) for mean in means), *(f"{p:.1g}" for p in chances),
                f"{held} of {len(own)}",
            )
        )  # fmt: skip
    return rows


def p_value(found: Sequence[PlanOutcome], other: str) -> float:
    """Return the p-value for the plan being better than other data (Wilcoxon, one-sided)."""
    less = np.array([one.plan - getattr(one, other) for one in found])
    if len(less) < 2 or not np.any(less):
        return 1.0
    return float(wilcoxon(less, alternative="greater").pvalue)


def command(
    world: Annotated[
        list[str] | None, typer.Option("--world", metavar="NAME", help="Worlds, one option each.")
    ] = None,
    replications: Replications = 50,
    seconds: Annotated[
        float | None,
        typer.Option(metavar="NUMBER", help="Stop after this time; run it again to go on."),
    ] = None,
    folder: Annotated[Path, typer.Option(metavar="FOLDER", help="Where outcomes are kept.")] = Path(
        "planning"
    ),
    seed: Seed = 0,
) -> None:
    """Compare promises after planned data with those after other data; check forecast intervals."""
    cases = [case for case in CASES if world is None or case.world in world]
    found = study(cases, replications, seed, folder, seconds)
    for line in markdown_table(HEAD, rows_of(cases, found), words=3):
        typer.echo(line)
    held = [one.held for one in found]
    if held:
        typer.echo(f"\n{sum(held)} of {len(held)} promises lie in their 90% intervals.")
