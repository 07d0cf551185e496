"""A policy as a spreadsheet: the rule on one sheet, the promise on another."""

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surefoot._atomic import replacing
from surefoot.certificates.policies import STEPS

if TYPE_CHECKING:
    from surefoot.pipeline.runs import Run

OWN = ("probability", "visits", "margin", "share of the log")
WIDEST = 60


def write_sheet(run: "Run", path: Path) -> None:
    """Write policy and promise of a run as .xlsx; no text is turned into a formula or a link."""
    try:
        import xlsxwriter
    except ImportError:
        raise ImportError(
            "writing .xlsx needs the extra 'excel'. Install it with: pip install 'surefoot[excel]'."
        ) from None
    with replacing(path, "wb") as file:
        book = xlsxwriter.Workbook(
            file, {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
        )
        bold, wrap = book.add_format({"bold": True}), book.add_format({"text_wrap": True})
        bold.set_bottom(1)
        wrap.set_align("top")
        _rule(book.add_worksheet("policy"), run, bold)
        _promise(book.add_worksheet("promise"), run, wrap)
        book.close()


def _rule(sheet: Any, run: "Run", bold: Any) -> None:
    states, actions = run.settings.columns.state, run.settings.columns.action
    by_steps = run.model.mdp.horizon is not None
    steps = map(run.settings.columns.own_name, STEPS) if by_steps else ()
    head = [*states, *steps, *actions, *OWN]
    rows = [
        [
            *_parts(line.state, len(states)),
            *((line.first_step, line.last_step) if by_steps else ()),
            *_parts(line.action, len(actions)),
            line.probability,
            line.visits,
            line.margin,
            line.share,
        ]
        for line in run.policy
    ]
    sheet.write_row(0, 0, head, bold)
    for i, row in enumerate(rows, start=1):
        for j, cell in enumerate(row):
            if isinstance(cell, str):
                sheet.write_string(i, j, cell)
            elif cell is not None:
                sheet.write_number(i, j, cell)
    sheet.freeze_panes(1, len(states))
    sheet.autofilter(0, 0, max(len(rows), 1), len(head) - 1)
    for j, name in enumerate(head):
        longest = max([len(name) + 3, *(len(_shown(row[j])) for row in rows)])
        sheet.set_column(j, j, min(longest + 1, WIDEST))


def _parts(label: Hashable, size: int) -> list[Any]:
    """Return the parts of a label by column; numbers stay numbers."""
    parts = label if isinstance(label, tuple) and size > 1 else (label,)
    return [
        part if isinstance(part, int | float) and not isinstance(part, bool) else str(part)
        for part in parts
    ]


def _shown(cell: Any) -> str:
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)


def _promise(sheet: Any, run: "Run", wrap: Any) -> None:
    certificate = run.certificate
    limit = certificate.upper_bound if certificate.objective == "max" else certificate.lower_bound
    facts: Sequence[tuple[str, Any]] = [
        ("promise", certificate.sentence),
        ("gain", certificate.gain_sentence),
        ("promised number", certificate.promise),
        ("limit", limit),
        ("nominal model", certificate.nominal_return),
        ("delta", certificate.delta),
        ("discount", run.model.mdp.discount),
        ("horizon", run.model.mdp.horizon),
        *(("warning", text) for text in certificate.warnings),
        *(("note", text) for text in certificate.notes),
        ("run folder", run.folder.name),
    ]
    kept = [(name, value) for name, value in facts if value not in ("", None)]
    for i, (name, value) in enumerate(kept):
        sheet.write_string(i, 0, name)
        if isinstance(value, str):
            sheet.write_string(i, 1, value, wrap)
        elif abs(value) < float("inf"):
            sheet.write_number(i, 1, value)
    sheet.set_column(0, 0, 18)
    sheet.set_column(1, 1, 90)
