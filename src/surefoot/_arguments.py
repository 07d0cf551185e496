"""Argument checks shared by many rooms, with the same wording everywhere."""

import difflib
from collections.abc import Collection, Iterable


def check_choice(name: str, value: object, choices: Iterable[object]) -> None:
    """Refuse a value that is not one of ``choices``.

    Examples
    --------
    >>> check_choice("objective", "maximum", ("max", "min"))
    Traceback (most recent call last):
    ValueError: objective='maximum'; choose 'max' or 'min'.
    """
    known = list(choices)
    if value in known:
        return
    listed = [repr(choice) for choice in known]
    words = " or ".join(listed) if len(listed) == 2 else f"one of {', '.join(listed)}"
    raise ValueError(f"{name}={value!r}; choose {words}.")


def check_inside(name: str, value: float) -> None:
    """Refuse a probability that is not strictly between 0 and 1.

    Examples
    --------
    >>> check_inside("delta", 1.0)
    Traceback (most recent call last):
    ValueError: delta=1.0; it must lie between 0 and 1.
    """
    if not 0 < value < 1:
        raise ValueError(f"{name}={value!r}; it must lie between 0 and 1.")


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint that suggests the closest known name, or "" if none is close.

    Examples
    --------
    >>> nearest("discuont", ["discount", "delta"])
    " Did you mean 'discount'?"
    """
    near = difflib.get_close_matches(name, list(known), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def check_listed(what: str, name: str, known: Collection[str]) -> None:
    """Refuse a name that is not in a catalogue.

    Examples
    --------
    >>> check_listed("domain", "machin", ("machine", "riverswim"))
    Traceback (most recent call last):
    ValueError: there is no domain 'machin' (did you mean 'machine'?). Choose one of ...
    """
    if name not in known:
        near = difflib.get_close_matches(name, list(known), n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        listed = ", ".join(known)
        raise ValueError(f"there is no {what} {name!r}{hint}. Choose one of {listed}.")
