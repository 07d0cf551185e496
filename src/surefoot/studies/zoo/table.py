"""The table: every sentence of every cell, how often it was broken, and whether that is too often.

One rule for all: exact binomial tests against the claimed level, Holm at .01 over the table. A
sentence withheld is not broken, and it counts among the trials: the claim is that the run prints
something false with probability delta at most. Sentences that restrict themselves to what the log
cannot refute are shown and not judged.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import binom

from surefoot.studies.zoo.cells import Cell, find_cells
from surefoot.studies.zoo.claims import Sentence
from surefoot.studies.zoo.counting import Record

SURE = 0.01
"""The chance that a table of sentences which all hold is found to break one."""
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
        Which one; ``level`` is how often it may be false.
    trials, broken, withheld
        Replications, and in how many it was false or not said.
    allowed
        The most that may be broken before the whole table fails.
    claimed, truth
        Means over the replications in which it was said; NaN where it never was.
    optimum
        The mean of what the best policy earns.
    open_share
        The largest share of time in states the policy says nothing about.
    exempt
        Whether it is only shown.
    holds
        Whether Holm's procedure lets it stand.
    """

    cell: Cell
    method: str
    kind: str
    delta: float
    level: float
    trials: int
    broken: int
    withheld: int
    claimed: float
    truth: float
    optimum: float
    open_share: float
    exempt: bool
    allowed: int = 0
    holds: bool = True

    @property
    def p_value(self) -> float:
        """How likely so many broken sentences are at the claimed level."""
        return float(binom.sf(self.broken - 1, self.trials, self.level))

    @property
    def row(self) -> tuple[str, ...]:
        """The line of the table."""
        verdict = "exempt" if self.exempt else "yes" if self.holds else "**NO**"
        numbers = (f"{number:.4g}" for number in (self.claimed, self.truth, self.optimum))
        return (
            self.cell.world, self.cell.log_text, self.method, self.kind, f"{self.delta:g}",
            f"{self.broken} of {self.trials}", f"{self.allowed}", f"{self.withheld}", *numbers,
            verdict,
        )  # fmt: skip


def tabulate(records: Iterable[Record]) -> list[Line]:
    """Return a line for every sentence, judged together."""
    groups: dict[tuple[str, str, str, float], list[tuple[Sentence, float]]] = {}
    for record in records:
        for sentence in record.sentences:
            key = (record.job.cell, record.job.method, sentence.kind, sentence.delta)
            groups.setdefault(key, []).append((sentence, record.optimum))
    return holm([_line(*key, said) for key, said in groups.items()])


def _line(
    cell: str, method: str, kind: str, delta: float, said: Sequence[tuple[Sentence, float]]
) -> Line:
    sentences = [sentence for sentence, _ in said]
    spoken = [sentence for sentence in sentences if sentence.claimed is not None]
    claimed = [sentence.claimed for sentence in spoken if sentence.claimed is not None]
    return Line(
        cell=find_cells(None, [cell])[0], method=method, kind=kind, delta=delta,
        level=sentences[0].level, trials=len(sentences),
        broken=sum(sentence.broken for sentence in sentences),
        withheld=len(sentences) - len(spoken),
        claimed=float(np.mean(claimed)) if claimed else np.nan,
        truth=float(np.mean([sentence.truth for sentence in spoken])) if spoken else np.nan,
        optimum=float(np.mean([best for _, best in said])),
        open_share=max(sentence.open_share for sentence in sentences),
        exempt=any(sentence.exempt for sentence in sentences),
    )  # fmt: skip


def holm(lines: Sequence[Line], sure: float = SURE) -> list[Line]:
    """Return the lines with verdicts: rejected from the smallest p-value on, while it is too small.

    The i-th smallest of m p-values is compared with ``sure / (m - i + 1)``. ``allowed`` is the most
    that may be broken at the first step: as long as no line has more, all stand.
    """
    judged = [line for line in lines if not line.exempt]
    size = max(1, len(judged))
    fallen: set[int] = set()
    for rank, line in enumerate(sorted(judged, key=lambda one: one.p_value)):
        if line.p_value > sure / (size - rank):
            break
        fallen.add(id(line))
    return [
        replace(
            line, holds=id(line) not in fallen,
            allowed=int(binom.isf(sure / size, line.trials, line.level)),
        )
        for line in lines
    ]  # fmt: skip


def markdown(lines: Sequence[Line]) -> str:
    """Return the table in Markdown."""
    rule = "|" + "|".join("---:" if i >= 4 else "---" for i in range(len(HEAD))) + "|"
    rows = ["| " + " | ".join(line.row) + " |" for line in lines]
    return "\n".join(["| " + " | ".join(HEAD) + " |", rule, *rows]) + "\n"
