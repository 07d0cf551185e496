"""The assumptions of a promise as a short list, each with what happens if it is wrong."""

from collections.abc import Iterable
from typing import NamedTuple

from surefoot._assumption_texts import plain
from surefoot._findings import Finding

WARNED = {"memory_seen", "drift_seen", "steps_differ", "past_matters", "not_markov"}
"""What checks say where the past, the step or the time matters."""


class Assumption(NamedTuple):
    """What is assumed, and what happens if it does not hold."""

    text: str
    otherwise: str


def assumptions(
    findings: Iterable[Finding], checks: Iterable[Finding], *, first_state: str, prior: str | None
) -> list[Assumption]:
    """Return the assumptions that a reader must accept for the promise to hold.

    Parameters
    ----------
    findings
        The findings of the certificate.
    checks
        The results of the checks for memory and drift in the log.
    first_state, prior
        Where episodes start, and the prior, in words; None without a prior.

    Examples
    --------
    >>> found = [Finding.of("support_listed")]
    >>> [one.text for one in assumptions(found, [], first_state="40 episode starts", prior=None)][1]
    'The list of what can happen is complete.'
    """
    findings = tuple(findings)
    own = [_told(found) for found in findings if found.level == "assumption"]
    return [
        Assumption(
            "Things go on as in the log, and what happens next depends on the present state and "
            "decision alone.",
            "If the process changes, or something matters that is not part of the state, no number "
            f"here holds. {_checked([*checks, *findings])}",
        ),
        *own,
        *([] if prior is None else [_prior(prior)]),
        Assumption(
            f"Runs start as in the log ({first_state}).",
            "Other starting states have other totals.",
        ),
        Assumption(
            "Many runs are averaged.",
            "A single run may do better or worse than the promise, by chance.",
        ),
    ]


def _told(found: Finding) -> Assumption:
    known = plain(found.code, found.values)
    if known is not None:
        return Assumption(*known)
    text = found.text  # a code of another version: use the text that came with it
    return Assumption(f"{text[:1].upper()}{text[1:].rstrip('.')}.", "")


def _prior(words: str) -> Assumption:
    return Assumption(
        f"Before looking at the data, every state and action is treated alike ({words}).",
        "The less an action was tried, the more depends on this. A frequentist promise does "
        "without it, and is more cautious.",
    )


def _checked(checks: Iterable[Finding]) -> str:
    codes = {found.code for found in checks}
    if codes & WARNED:
        return "The log was checked for both: see the warnings above."
    if {"no_memory_seen", "no_drift_seen"} <= codes:
        return "The log was checked for both and shows neither."
    return "The log could not be checked for all of this."
