"""The summary of counts: what to know about the data before trusting a result."""

from typing import Any

import numpy as np

from surefoot._finding_codes import worst_words
from surefoot._findings import Finding, texts_of
from surefoot.data.conversions import initial_distribution
from surefoot.data.count_arrays import CountArrays

RAREST = 3
"""How many of the rarest rows are named."""


def summarize(counts: CountArrays, *, costs: bool = False) -> str:
    """Return the summary as text; with ``costs``, rewards are negative costs."""
    found = [finding.mirrored() if costs else finding for finding in findings_of(counts)]
    warnings = [f"warning: {text}" for text in texts_of(found, "warning")]
    return "\n".join([*describe(counts, costs=costs), *warnings])


def describe(counts: CountArrays, *, costs: bool = False) -> list[str]:
    """Return the lines of the summary that are not warnings."""
    lines = [*_origin(counts), *_size(counts), *_visits(counts), *_rewards(counts, costs)]
    lines.append(f"first state: {initial_distribution(counts).origin}")
    lines += _support(counts, costs)
    if counts.log is not None:
        lines += [f"note: {text}" for text in texts_of(counts.log.findings, "note")]
    return lines + [f"check: {check.sentence}" for check in counts.checks if not check.warns]


def findings_of(counts: CountArrays) -> tuple[Finding, ...]:
    """Return the findings that apply to every promise made from these counts."""
    found = [check.finding for check in counts.checks if check.warns]
    if counts.log is not None:
        found += [
            Finding.of("rows_left_out", rows=rows, what=what)
            for what, rows in counts.log.dropped.items()
        ]
        found += counts.log.findings
    report = counts.report
    if report is not None and report.support == "observed":
        found.append(Finding.of("observed_only"))
    if report is not None and report.stuck_states:
        found.append(
            Finding.of("stuck_states", states=report.stuck_states, amount=report.lowest_reward)
        )
    return tuple(found)


def _number(size: float, noun: str) -> str:
    return f"{size:,} {noun}{'' if size == 1 else 's'}"


def _origin(counts: CountArrays) -> list[str]:
    log = counts.log
    transitions = _number(_plain(counts.count.sum()), "transition")
    if log is None:
        return [f"{transitions}, given as an array"]
    lines = [f"{', '.join(log.names)}: {_number(log.rows, 'row')}, {transitions}"]
    if log.episodes is not None:
        cut = f"; {_number(log.cut, 'row')} only ended a cut-off episode" if log.cut else ""
        lines.append(f"{_number(log.episodes, 'episode')}{cut}")
    if log.zero_rows:
        lines.append(f"{_number(log.zero_rows, 'row')} with count 0")
    return lines


def _plain(value: Any) -> int | float:
    number = float(value)
    return int(number) if number.is_integer() else number


def _rounded(value: float) -> str:
    """Return a quartile with a few digits only."""
    return f"{value:,.0f}" if value >= 100 else f"{_plain(round(float(value), 1)):,}"


def _size(counts: CountArrays) -> list[str]:
    special = int(np.count_nonzero(counts.is_terminal))
    acting = counts.num_states - special - (counts.unseen is not None)
    tried = int(np.count_nonzero(counts.visits > 0))
    terminal = f" and {special:,} terminal" if special else ""
    lines = [
        f"{_number(acting, 'state')}{terminal}, {_number(counts.num_actions, 'action')}; "
        f"{tried:,} of {acting * counts.num_actions:,} state-action pairs tried"
    ]
    if not counts.declared:
        idle = np.diff(counts.state_start) == 0
        idle = int(np.count_nonzero(idle & ~counts.is_terminal))
        if idle:
            lines.append(f"{_number(idle, 'state')} entered but never acted in")
    return lines


def _visits(counts: CountArrays) -> list[str]:
    tried = np.flatnonzero(counts.visits > 0)
    if len(tried) == 0:
        return ["no state-action pair was tried"]
    visits = counts.visits[tried]
    quartiles = " / ".join(map(_rounded, np.percentile(visits, [25, 50, 75])))
    order = np.argsort(visits, kind="stable")[:RAREST]
    rarest = "; ".join(f"{counts.row_name(tried[i])}: {_plain(visits[i]):,}" for i in order)
    return [
        f"tries per pair: least {_plain(visits.min()):,}, quartiles {quartiles}, most "
        f"{_plain(visits.max()):,}",
        f"rarest: {rarest}",
    ]


def _rewards(counts: CountArrays, costs: bool) -> list[str]:
    word = "cost" if costs else "reward"
    if counts.reward_low is None or counts.reward_high is None:
        return [f"no {word}s"]
    low, high = np.nanmin(counts.reward_low), np.nanmax(counts.reward_high)
    if costs:
        low, high = 0.0 - high, 0.0 - low
    lines = [f"{word}s from {low:g} to {high:g}" + (", given" if counts.given is not None else "")]
    varied = 0 if counts.reward_var is None else int(np.count_nonzero(counts.reward_var > 0))
    if varied:
        how = {
            "fixed": "their means are taken as exact",
            "normal": "their means are uncertain (normal model)",
            "bounded": "their means are uncertain (bounded model)",
        }[counts.reward_model]
        shows = "shows" if varied == 1 else "show"
        lines.append(f"{_number(varied, 'transition')} {shows} more than one {word}; {how}")
    return lines


def _support(counts: CountArrays, costs: bool) -> list[str]:
    report = counts.report
    if report is None:
        return []
    names = {
        "observed": "those observed in the row",
        "action": "those observed anywhere under the action",
        "all": "all states",
        "unseen": "those observed in the row, and one unseen state",
        "learned": "those observed in the row, and those that patterns of the log suggest",
        "listed": "as listed",
    }
    lines = [f"successors of a row: {names[report.support]}"]
    if report.unvisited_rows:
        fate = "not offered" if report.unvisited == "drop" else "left to the prior"
        lines.append(f"{_number(report.unvisited_rows, 'pair')} never tried: {fate}")
    if report.thin_rows:
        lines.append(
            f"{_number(report.thin_rows, 'pair')} tried fewer than {report.min_visits} times: not "
            "offered"
        )
    if report.filled_rewards:
        lines.append(
            f"{_number(report.filled_rewards, 'possible transition')} never seen: at the "
            f"{worst_words('min' if costs else 'max')} "
            f"{'of the action' if counts.reward_range is None else 'declared'}"
        )
    return lines
