"""What to measure next: where the doubt of a run comes from, and what more data would bring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from surefoot._findings import Finding
from surefoot._workers import current, each_part
from surefoot.certificates.exploration import Exploration, exploration
from surefoot.certificates.models import allowed_rows
from surefoot.certificates.questions import expert_questions
from surefoot.certificates.row_doubt import RowDoubt, row_doubt
from surefoot.pipeline.finished_runs import load_run
from surefoot.pipeline.journal import Nobody, Teller
from surefoot.pipeline.model import Model
from surefoot.pipeline.outlook import Outlook, in_one_future, outlook_of
from surefoot.pipeline.plan_lines import (
    Forecast,
    UnusedLine,
    episode_lines,
    plan_lines,
    question_line,
    target_of,
    unused_lines,
)
from surefoot.pipeline.plan_result import WAYS, Plan
from surefoot.pipeline.posteriors import Own
from surefoot.pipeline.runs import Run, computing
from surefoot.posterior.protocol import is_divisible

SIZES, FAR_SIZES = (10, 100, 1000), (10_000, 100_000)
"""Numbers of samples that are simulated; the second group only for a target."""
USUAL_SAMPLES = 100
SIMULATIONS = 19
"""Futures for each number of samples: the fewest whose lowest and highest enclose 90%."""
UNUSED = 5
"""How many of the rows that the policy does not use are listed and explored."""


def plan(
    run: Run | str | Path,
    *,
    samples: int = USUAL_SAMPLES,
    target: float | None = None,
    episodes: bool = False,
    simulations: int = SIMULATIONS,
    posterior: Own | None = None,
    teller: Teller | None = None,
    cluster: str | None = None,
) -> Plan:
    """Find where the doubt of a finished run comes from, and what to measure next.

    Parameters
    ----------
    run
        A finished run, or its folder; its log is not needed.
    samples
        How many further samples (steps of a log) to allocate.
    target
        A wanted promise: the plan estimates how many samples it takes.
    episodes
        Whether only whole episodes can be collected: forecasts and target are then about these.
    simulations
        Futures that are simulated for each number of samples; 0 leaves forecasts out, which is
        quick. A target needs them.
    posterior
        The posterior that `run` was given, if any: a folder cannot hold it, but a `Run` does.
    teller
        Shows the progress; None is silent.
    cluster
        Where the work is done, as for `certify`. The answer is the same, bit for bit.

    Examples
    --------
    >>> import tempfile
    >>> from dataclasses import replace
    >>> from surefoot import run
    >>> from surefoot.demo import demo_settings
    >>> with tempfile.TemporaryDirectory() as place:
    ...     made = run(replace(demo_settings(), draws=500, eta=0.01), Path(place, "run"))
    ...     found = plan(made, samples=100, simulations=0)
    >>> found.rows[0].state, found.rows[0].action, sum(line.tries for line in found.rows)
    ('wear 4', 'repair', 100)
    """
    _check_asked(samples, target, simulations)
    own = run.model.own if posterior is None and isinstance(run, Run) else posterior
    made = load_run(run.folder if isinstance(run, Run) else run, posterior=own)
    check_run(made)
    with computing(replace(made.settings, cluster=cluster)):
        making = _Making(run=made, samples=samples, whole=episodes, teller=teller or Nobody())
        return making.plan(target, simulations)


def _check_asked(samples: int, target: float | None, simulations: int) -> None:
    if not (isinstance(samples, int | np.integer) and samples >= 1):
        raise ValueError(f"samples={samples!r}; it must be a whole number, 1 or more.")
    if simulations != 0 and not simulations >= SIMULATIONS:
        raise ValueError(
            f"simulations={simulations!r}; an interval of 90% needs at least {SIMULATIONS}. 0 "
            "leaves forecasts out."
        )
    if target is not None and not np.isfinite(target):
        raise ValueError(f"target={target!r}; it must be a finite number.")
    if target is not None and simulations == 0:
        raise ValueError("target= needs simulated futures; leave simulations=0 out.")


def check_run(run: Run) -> None:
    """Refuse runs for which no plan can be made."""
    if not run.model.bayesian:
        raise ValueError(
            f"{run.folder}: a plan simulates data from a posterior, and basis='frequentist' has "
            "none. Solve the log with basis='bayesian' first."
        )
    if not is_divisible(run.model.posterior):
        raise ValueError(
            f"{run.folder}: this posterior cannot say what it would be with more data: it has no "
            "counts, or no method given(count). See docs/posteriors.md."
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Making:
    """Makes a plan, in the rewards of the model."""

    run: Run
    samples: int
    whole: bool
    teller: Teller

    @property
    def model(self) -> Model:
        return self.run.model

    @property
    def sign(self) -> float:
        return -1.0 if self.model.settings.costs else 1.0

    @cached_property
    def certificate(self) -> Any:
        return self.model.shown(self.run.certificate)

    @cached_property
    def rngs(self) -> list[np.random.Generator]:
        return np.random.default_rng([self.model.settings.seed, 15]).spawn(4)

    @cached_property
    def doubt(self) -> RowDoubt:
        one = self.certificate
        return row_doubt(
            self.model.posterior, self.model.mdp, one.policy, self.rngs[0], delta=one.delta
        )

    @cached_property
    def unused(self) -> Exploration | None:
        """The rows that the policy does not use; None over a horizon."""
        if self.model.mdp.horizon is not None:
            return None
        model = self.model
        rows = allowed_rows(model.mdp, model.allowed)
        rows = rows[~model.passive[model.mdp.row_state[rows]]]
        return exploration(
            model.posterior, model.mdp, self.certificate.policy, self.rngs[1], rows=rows
        )

    def plan(self, target: float | None, simulations: int) -> Plan:
        model, doubt = self.model, self.doubt
        one, promise = self.certificate, self.run.certificate.promise
        asked = expert_questions(one, model.posterior, model.mdp, doubt, self.rngs[2])
        unused = () if self.unused is None else unused_lines(model, self.unused, UNUSED)
        outlook = outlook_of(self.run, one, doubt, self._to_explore(unused), whole=self.whole)
        forecasts = self._forecasts(outlook, target is not None, simulations)
        found = None
        if target is not None:
            chance = float(np.mean(doubt.returns >= self.sign * target))
            own = [forecast for forecast in forecasts if forecast.way == outlook.main]
            found = target_of(target, promise, own, chance, self.sign)
        return Plan(
            run=self.run,
            samples=self.samples,
            rows=plan_lines(model, doubt, self.samples),
            episodes=()
            if outlook.episodes is None
            else episode_lines(outlook.episodes, doubt, self.samples),
            forecasts=forecasts,
            target=found,
            questions=tuple(question_line(model, q, promise, self.sign) for q in asked),
            unused=unused,
            explained=doubt.explained,
            common=doubt.common,
            findings=self._findings(),
        )

    def _to_explore(self, lines: tuple[UnusedLine, ...]) -> np.ndarray:
        """Return the rows of the given lines, which are the first rows of the exploration."""
        if self.unused is None:
            return np.zeros(0, dtype=np.int64)
        return self.unused.rows[: len(lines)]

    def _findings(self) -> tuple[Finding, ...]:
        found = list(self.doubt.findings)
        if self.model.settings.honest:
            found.append(Finding.of("plan_of_a_split"))
        if self.unused is None:
            found.append(Finding.of("plan_of_a_horizon"))
        if self.run.certificate.withheld:
            found.append(Finding.of("plan_of_a_withheld_promise"))
        return tuple(found)

    def _forecasts(self, outlook: Outlook, far: bool, simulations: int) -> tuple[Forecast, ...]:
        if simulations == 0:
            return ()
        cells = self._cells(outlook, far=far)
        futures = [(rng,) for rng in self.rngs[3].spawn(simulations)]
        promises: dict[int, list[float]] = {}
        with self.teller.stage("Simulating futures", simulations * len(cells)) as stage:

            def tell(done: int, way: str, samples: int) -> None:
                over = len(promises) * len(cells)
                stage.update(over + done, f"{WAYS[way]}, {samples:,} samples")

            here = current() is None
            work = partial(in_one_future, told=tell) if here else in_one_future
            for future, found in each_part(work, (outlook, cells), futures):
                promises[future] = found
                if not here:
                    stage.update(len(promises) * len(cells), f"{len(promises)} futures")
        return tuple(
            Forecast.of(way, samples, [promises[i][j] for i in range(simulations)], self.sign)
            for j, (way, samples) in enumerate(cells)
        )

    def _cells(self, outlook: Outlook, *, far: bool) -> list[tuple[str, int]]:
        """Return what to simulate: the plan at all sizes, other ways at the requested number."""
        ways: Mapping[str, Any] = outlook.schemes
        sizes = sorted({*SIZES, *(FAR_SIZES if far else ()), self.samples})
        cells = [(outlook.main, size) for size in sizes]
        return cells + [(way, self.samples) for way in ways if way != outlook.main]
