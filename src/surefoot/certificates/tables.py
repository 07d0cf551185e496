"""The facts behind a promise as small tables, for terminal and page."""

from collections.abc import Sequence

from surefoot._display import Grid
from surefoot._doubt_texts import CAUSES
from surefoot._rounding import column_texts
from surefoot.certificates.evidence import Doubt, Tilted


def doubt_grid(doubt: Doubt) -> Grid:
    """Return the doubt by cause: amount, its standard error, the promise without it.

    Examples
    --------
    >>> from surefoot.certificates.evidence import Cause
    >>> cause = Cause(amount=2.0, error=0.1, promise_without=9.5)
    >>> print(doubt_grid(Doubt(as_seen=10.0, draws=500, unseen=cause)).text())
    doubt                    amount   +- promise without
    what was never observed  2.0000  0.1          9.5000
    """
    causes = {name: cause for name, cause in doubt.causes.items() if cause.amount != 0.0}
    amounts = column_texts([cause.amount for cause in causes.values()])
    without = column_texts([cause.promise_without for cause in causes.values()])
    rows = [
        (CAUSES[name], amount, f"{cause.error:.1g}" if cause.error else "", kept)
        for (name, cause), amount, kept in zip(causes.items(), amounts, without, strict=True)
    ]
    return Grid(head=("doubt", "amount", "+-", "promise without"), rows=rows, total=len(rows))


def tilted_grid(tilted: Sequence[Tilted]) -> Grid | None:
    """Return the returns of tilted policies by episodes and by model; None if there are none.

    Examples
    --------
    >>> one = Tilted(share=0.25, log=1.0, error=0.1, model=1.5, episodes=80.0)
    >>> print(tilted_grid([one]).text())
    towards the policy  by the episodes   +-  by the model  worth episodes
    25%                          1.0000  0.1        1.5000              80
    """
    if not tilted:
        return None
    logs = column_texts([one.log for one in tilted])
    models = column_texts([one.model for one in tilted])
    rows = [
        (f"{100 * one.share:.0f}%", log, f"{one.error:.2g}", model, f"{one.episodes:,.0f}")
        for one, log, model in zip(tilted, logs, models, strict=True)
    ]
    head = ("towards the policy", "by the episodes", "+-", "by the model", "worth episodes")
    return Grid(head=head, rows=rows, total=len(rows))
