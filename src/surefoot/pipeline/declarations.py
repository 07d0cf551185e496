"""The settings of a run, one by one: what each means, and which values it may have."""

from __future__ import annotations

import math
from dataclasses import dataclass

from surefoot.pipeline.setting import (
    COLUMN,
    COMPUTING,
    FILE,
    MODEL,
    NUMBER,
    OWN,
    PROMISE,
    READING,
    SEARCH,
    WHOLE,
    WORD,
    setting,
)

MOST_DRAWS = 10**8
"""More draws than this would take days, and more memory than any machine has."""


def _is_level(value: float) -> bool:
    return 0 < value <= 0.5


@dataclass(frozen=True, kw_only=True, repr=False)
class Declarations:
    """The fields of `surefoot.pipeline.settings.Settings`, which says what they do together."""

    log: tuple[str, ...] = setting((), "", "Files, folders or globs with the log.", names="log")
    discount: float | None = setting(
        None, PROMISE, "What next step's reward is worth today.", metavar=NUMBER,
        holds=lambda value: 0 <= value <= 1, rule="at least 0 and at most 1",
        otherwise="no default; 1 with --horizon",
    )  # fmt: skip
    horizon: int | None = setting(
        None, PROMISE, "Count at most this many steps; the policy may depend on the step.",
        metavar=WHOLE, holds=lambda value: value >= 1, rule="1 or more", otherwise="no limit",
    )  # fmt: skip
    final_reward: str | None = setting(
        None, PROMISE, "With --horizon: CSV of what states are worth after the last step (state, "
        "reward); others are worth 0.", metavar=FILE, names="file", otherwise="nothing",
    )  # fmt: skip
    by_step: bool = setting(
        False, MODEL, "With --horizon: keep what was seen at different steps apart, instead of "
        "pooling it."
    )  # fmt: skip
    stationary: bool = setting(
        False, PROMISE, "With --horizon: one rule for all steps instead of one for each."
    )
    delta: float = setting(
        0.05, PROMISE, "Failure probability of the promise.", metavar=NUMBER,
        holds=_is_level, rule="above 0 and at most 0.5",
    )  # fmt: skip
    eta: float = setting(
        0.001, PROMISE, "Failure probability of the Monte Carlo behind it.", metavar=NUMBER,
        holds=_is_level, rule="above 0 and at most 0.5",
    )  # fmt: skip
    state: tuple[str, ...] = setting(
        (), READING, "The state; repeat for several columns.", metavar=COLUMN, otherwise="state"
    )
    action: tuple[str, ...] = setting(
        (), READING, "The action; repeat for several columns.", metavar=COLUMN, otherwise="action"
    )
    next_state: tuple[str, ...] = setting(
        (), READING, "The next state; without it, episode and step say which row follows which.",
        metavar=COLUMN, otherwise="next_state, or the row after",
    )  # fmt: skip
    reward: str = setting("reward", READING, "The reward.", metavar=COLUMN)
    reward_table: str | None = setting(
        None, READING, "Rewards by state, action and perhaps next_state, instead of the column.",
        metavar=FILE, names="file",
    )  # fmt: skip
    episode: str | None = setting(
        None, READING, "Which rows belong together: one episode.", metavar=COLUMN
    )
    step: str | None = setting(
        None, READING, "The order of the rows of an episode.", metavar=COLUMN
    )
    terminal: str | None = setting(
        None, READING, "True where an episode ended by itself.", metavar=COLUMN
    )
    count: str | None = setting(
        None, READING, "How many transitions a row stands for.", metavar=COLUMN, otherwise="1"
    )
    labels: str = setting(
        "auto", READING, "Labels of a CSV: auto, or text to keep 01 apart from 1.", metavar=WORD,
        words=("auto", "text"),
    )  # fmt: skip
    decimal: str | None = setting(
        None, READING, "Decimal mark of numbers in text: . or , (a comma).",
        metavar="MARK", words=(".", ","), otherwise="detected",
    )  # fmt: skip
    date_format: str | None = setting(
        None, READING, "How the dates of steps are written, as in %d.%m.%Y.", metavar="FORMAT",
        otherwise="detected",
    )  # fmt: skip
    encoding: str | None = setting(
        None, READING, "How text files are encoded, as in cp1252.", metavar="NAME",
        otherwise="detected",
    )  # fmt: skip
    sheet: str | None = setting(
        None, READING, "The sheet of a spreadsheet.", metavar="NAME", otherwise="its only one"
    )
    table: str | None = setting(
        None, READING, "The table of a DuckDB or SQLite file.", metavar="NAME",
        otherwise="its only one",
    )  # fmt: skip
    query: str | None = setting(None, READING, "One SELECT in place of a table.", metavar="SQL")
    bins: tuple[str, ...] = setting(
        (), READING, "Cut a column of numbers into bins: age=4 (as many rows in each), or edges "
        "as in age=40,55; repeat for several columns.", metavar="COLUMN=BINS",
    )  # fmt: skip
    missing: str = setting(
        "error", READING, "Rows that lack a value: error or drop.", metavar=WORD,
        words=("error", "drop"),
    )  # fmt: skip
    rewards: str | None = setting(
        None, READING, "How uncertain mean rewards are: fixed, normal or bounded.", metavar=WORD,
        words=("fixed", "normal", "bounded"), otherwise="depends on the log",
    )  # fmt: skip
    reward_range: tuple[float, ...] = setting(
        (), READING, "The lowest and the highest reward possible.", metavar="LOW HIGH",
        otherwise="as seen",
        holds=lambda value: len(value) in (0, 2), rule="two numbers: lowest, highest",
    )  # fmt: skip
    costs: bool = setting(
        False, READING, "The reward column holds costs: the promise is an upper bound on the cost."
    )
    unit: str | None = setting(
        None, PROMISE, "What rewards are counted in (euros, say), for sentences.", metavar="TEXT"
    )
    support: str | None = setting(
        None, MODEL,
        "Successors of a pair: learned, observed, action, all, unseen, or a file that lists them.",
        metavar="RULE", names="word or file", otherwise="learned, or unseen with --prior",
    )  # fmt: skip
    unseen: str | None = setting(
        None, MODEL, "Where the unseen leads: to the worst state of the log (worst), or to a state "
        "of its own that earns the lowest reward forever (absorbing).", metavar=WORD,
        words=("worst", "absorbing"), otherwise="worst",
    )  # fmt: skip
    unvisited: str | None = setting(
        None, MODEL, "Pairs never tried: drop, or prior to offer them to the policy.",
        metavar=WORD, words=("drop", "prior"), otherwise="drop",
    )  # fmt: skip
    min_visits: int = setting(
        0, MODEL, "Do not offer pairs tried fewer times.", metavar=WHOLE,
        holds=lambda value: value >= 0, rule="0 or more",
    )  # fmt: skip
    initial: str | None = setting(
        None, MODEL, "First state: episodes, uniform, or a CSV (state, probability).",
        metavar="RULE", names="word or file", otherwise="depends on the log",
    )  # fmt: skip
    prior: float | None = setting(
        None, MODEL, "Dirichlet parameter of every successor.", metavar=NUMBER,
        holds=lambda value: 0 < value < math.inf, rule="a finite number above 0",
        otherwise="learned from the log",
    )  # fmt: skip
    least_tries: int = setting(
        3, SEARCH, "Choose no action tried fewer times than this if the state has another tried at "
        "least that often.",
        metavar=WHOLE, holds=lambda value: value >= 0, rule="0 or more",
    )  # fmt: skip
    allowed: str | None = setting(
        None, SEARCH, "CSV of the pairs (state, action) the policy may use.", metavar=FILE,
        names="file", otherwise="all",
    )  # fmt: skip
    forbidden: str | None = setting(
        None, SEARCH, "CSV of the pairs (state, action) the policy must not use; columns left out "
        "mean any.", metavar=FILE, names="file", otherwise="none",
    )  # fmt: skip
    order: str | None = setting(
        None, OWN, "CSV that lists labels, column by column, in the order to show them in.",
        metavar=FILE, names="file", otherwise="natural",
    )  # fmt: skip
    basis: str = setting(
        "bayesian", PROMISE, "bayesian (given the prior) or frequentist (no prior).",
        metavar=WORD, words=("bayesian", "frequentist"),
    )  # fmt: skip
    honest: bool = setting(
        False, PROMISE, "Choose on one part of the log and certify on the other."
    )
    norm: str = setting(
        "l1", PROMISE, "Norm of the robust set: l1 or linf.", metavar=WORD, words=("l1", "linf")
    )
    weights: str = setting(
        "uniform", PROMISE, "Weights of the robust set: uniform, analytic or socp.", metavar=WORD,
        words=("uniform", "analytic", "socp"),
    )  # fmt: skip
    kind: str | None = setting(
        None, PROMISE, "Frequentist set: clopper_pearson, weighted_l1, hoeffding_l1, "
        "hoeffding_linf, bernstein_l1 or kl.", metavar=WORD, otherwise="clopper_pearson",
        words=("clopper_pearson", "weighted_l1", "hoeffding_l1", "hoeffding_linf", "bernstein_l1",
               "kl"),
    )  # fmt: skip
    seed: int = setting(
        0, COMPUTING, "Seed of all random numbers.", metavar=WHOLE,
        holds=lambda value: value >= 0, rule="0 or more",
    )  # fmt: skip
    draws: int | None = setting(
        None, COMPUTING, "Posterior draws for each bound.", metavar=WHOLE,
        otherwise="as many as needed",
        holds=lambda value: 1 <= value <= MOST_DRAWS, rule=f"from 1 to {MOST_DRAWS}",
    )  # fmt: skip
    limit_effort: float = setting(
        1.0, COMPUTING, "Work for the limit that no policy can be promised to exceed: 4 takes four "
        "times the usual draws.", metavar=NUMBER,
        holds=lambda value: 0 < value < math.inf, rule="above 0",
    )  # fmt: skip
    time_budget: float | None = setting(
        None, SEARCH, "Seconds for the whole command, the first compilation excluded.",
        metavar="SECONDS", otherwise="no limit",
        holds=lambda value: value >= 0, rule="seconds, 0 or more",
    )  # fmt: skip
    search_steps: int | None = setting(
        None, SEARCH, "How many steps to search, as a run with a time budget records it.",
        metavar=WHOLE, otherwise="all",
        holds=lambda value: value >= 0, rule="0 or more",
    )  # fmt: skip
    threads: int | None = setting(
        None, COMPUTING, "Use at most this many processors.", metavar=WHOLE, otherwise="all",
        holds=lambda value: value >= 1, rule="at least 1", matters=False,
    )  # fmt: skip
    cluster: str | None = setting(
        None, COMPUTING, "Share the work among the machines of a Ray cluster: local (workers on "
        "this machine), auto (the cluster that Ray finds) or its address. The answer is the same.",
        metavar="WHERE", otherwise="this process",
        holds=lambda value: value in ("local", "auto") or ":" in value,
        rule="local, auto or an address such as 10.0.0.5:6379", matters=False, recorded=False,
    )  # fmt: skip
    device: str = setting(
        "auto", COMPUTING, "Where draws are made and evaluated: cpu, gpu, or auto (a GPU where it "
        "clearly pays).", metavar=WORD, words=("auto", "cpu", "gpu"),
    )  # fmt: skip
    strict: bool = setting(
        False, OWN, "Exit with code 4 if the search was stopped early or the backtest failed.",
        matters=False,
    )  # fmt: skip
    add: str | None = setting(
        None, OWN, "Add the log to the counts of this earlier run folder.", metavar="RUN",
        names="run",
    )  # fmt: skip
