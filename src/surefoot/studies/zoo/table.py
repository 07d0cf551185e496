"""The table: every sentence of every cell, how often it was broken, and whether that is too often.

One rule for all: exact binomial tests against the claimed level, with Holm's procedure at .01 over
all lines of a method. Trials are the sentences that were stated: withheld sentences are shown but
do not count as trials. Sentences limited by a condition that the log cannot refute are shown but
not judged. A line without trials is no test, so it does not count in Holm's procedure, and neither
do the lines of other methods: more lines must not make a verdict milder.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import binom

from surefoot.studies.zoo.cells import CELLS, Cell
from surefoot.studies.zoo.claims import Sentence
from surefoot.studies.zoo.replications import Record

SURE = 0.01
"""The probability of rejecting any line of a table in which all sentences hold."""
HEAD = (
    "world", "log", "method", "sentence", "delta", "broken", "allowed", "withheld", "mean promise",
    "mean truth", "optimum", "holds",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Line:
    """One sentence in one cell.

    Attributes
    ----------
    cell, method, kind, delta, level
        The sentence; ``level`` is how often it may be false.
    trials, broken
        In how many replications it was stated, and in how many of these it was false; exempt
        sentences count only if all are exempt.
    withheld, exempt
        In how many replications it was withheld, and in how many it was stated but exempt.
    allowed
        The largest number of broken sentences that the first step of Holm's procedure accepts.
    claimed, truth
        Means over the trials; NaN if there are none.
    optimum
        The mean return of the best policy.
    open_share
        The largest share of time in states for which the policy has no action.
    judged
        Whether there is something to judge; otherwise the line is only shown.
    holds
        Whether Holm's procedure does not reject it.
    """

    cell: Cell
    method: str
    kind: str
    delta: float
    level: float
    trials: int
    broken: int
    withheld: int
    exempt: int
    judged: bool
    claimed: float
    truth: float
    optimum: float
    open_share: float
    allowed: int = 0
    holds: bool = True

    @property
    def p_value(self) -> float:
        """The probability of at least this many broken sentences at the claimed level."""
        return float(binom.sf(self.broken - 1, self.trials, self.level))

    @property
    def facts(self) -> dict[str, Any]:
        """The line as data for JSON; numbers that are not finite are None."""
        names = (
            "method", "kind", "delta", "level", "trials", "broken", "allowed", "withheld", "exempt",
            "judged", "claimed", "truth", "optimum", "open_share", "holds",
        )  # fmt: skip
        told = {name: getattr(self, name) for name in names}
        finite = {
            name: None if isinstance(value, float) and not np.isfinite(value) else value
            for name, value in told.items()
        }
        return {
            "cell": self.cell.name,
            "world": self.cell.world,
            "log": self.cell.log_text,
        } | finite

    @property
    def row(self) -> tuple[str, ...]:
        """The row of the table."""
        numbers = (f"{number:.4g}" for number in (self.claimed, self.truth, self.optimum))
        return (
            self.cell.world, self.cell.log_text, self.method, self.kind, f"{self.delta:g}",
            f"{self.broken} of {self.trials}", f"{self.allowed}", f"{self.withheld}", *numbers,
            self.verdict,
        )  # fmt: skip

    @property
    def verdict(self) -> str:
        """Whether the sentence holds, in a word or two."""
        if not self.judged:
            return "exempt" if self.exempt else "not said"
        word = "yes" if self.holds else "**NO**"
        return f"{word} ({self.exempt} exempt)" if self.exempt else word


def tabulate(records: Iterable[Record], cells: Sequence[Cell] = CELLS) -> list[Line]:
    """Return a line for every sentence; the lines of a method are judged together.

    ``cells`` must include the cells of all records.
    """
    cell_of = {cell.name: cell for cell in cells}
    groups: dict[tuple[str, str, str, float], list[tuple[Sentence, float]]] = {}
    for record in records:
        for sentence in record.sentences:
            key = (record.job.cell, record.job.method, sentence.kind, sentence.delta)
            groups.setdefault(key, []).append((sentence, record.optimum))
    lines = [
        _line(cell_of[cell], method, kind, delta, said)
        for (cell, method, kind, delta), said in groups.items()
    ]
    methods = dict.fromkeys(line.method for line in lines)
    judged = {name: iter(holm([one for one in lines if one.method == name])) for name in methods}
    return [next(judged[line.method]) for line in lines]


def _line(
    cell: Cell, method: str, kind: str, delta: float, said: Sequence[tuple[Sentence, float]]
) -> Line:
    sentences = [sentence for sentence, _ in said]
    stated = [sentence for sentence in sentences if sentence.claimed is not None]
    strict = [sentence for sentence in stated if not sentence.exempt]
    counted = strict or stated
    claimed = [sentence.claimed for sentence in counted if sentence.claimed is not None]
    return Line(
        cell=cell, method=method, kind=kind, delta=delta, level=sentences[0].level,
        trials=len(counted), broken=sum(sentence.broken for sentence in counted),
        withheld=len(sentences) - len(stated), exempt=len(stated) - len(strict),
        judged=bool(strict), claimed=float(np.mean(claimed)) if claimed else np.nan,
        truth=float(np.mean([sentence.truth for sentence in counted])) if counted else np.nan,
        optimum=float(np.mean([best for _, best in said])),
        open_share=max(sentence.open_share for sentence in sentences),
    )  # fmt: skip


def holm(lines: Sequence[Line], sure: float = SURE) -> list[Line]:
    """Return the lines with verdicts: rejected in order of p-value, until one is large enough.

    The i-th smallest of m p-values is compared with ``sure / (m - i + 1)``. ``allowed`` is the most
    that may be broken at the first step: as long as no line has more, all hold.
    """
    judged = [line for line in lines if line.judged]
    size = max(1, len(judged))
    fallen: set[int] = set()
    for rank, line in enumerate(sorted(judged, key=lambda one: one.p_value)):
        if line.p_value > sure / (size - rank):
            break
        fallen.add(id(line))
    return [
        replace(line, holds=id(line) not in fallen, allowed=_most(line, sure / size))
        for line in lines
    ]


def _most(line: Line, sure: float) -> int:
    return int(binom.isf(sure, line.trials, line.level)) if line.trials else 0


def markdown(lines: Sequence[Line]) -> str:
    """Return the table in Markdown."""
    rule = "|" + "|".join("---:" if i >= 4 else "---" for i in range(len(HEAD))) + "|"
    rows = ["| " + " | ".join(line.row) + " |" for line in lines]
    return "\n".join(["| " + " | ".join(HEAD) + " |", rule, *rows]) + "\n"
