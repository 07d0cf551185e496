"""Checks of arguments that many rooms make, in the same words."""

from collections.abc import Iterable


def check_choice(name: str, value: object, choices: Iterable[object]) -> None:
    """Refuse a value that is none of a few.

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
