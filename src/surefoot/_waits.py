"""Calls with a time limit: a call that may never return runs in a thread of its own."""

import queue
import threading
from collections.abc import Callable
from typing import Any


class TookTooLong(Exception):  # noqa: N818
    """A call did not return in time."""


def within(seconds: float, call: Callable[[], Any], until: threading.Event | None = None) -> Any:
    """Return the result of a call, or raise `TookTooLong` and leave the call running.

    ``until`` keeps the thread alive until it is set: processes that Ray starts end with the thread
    that started them.

    Examples
    --------
    >>> within(5.0, lambda: 3)
    3
    """
    answers: queue.Queue[tuple[Any, BaseException | None]] = queue.Queue()

    def answer() -> None:
        try:
            answers.put((call(), None))
        except BaseException as problem:  # any error is raised again in the waiting thread
            answers.put((None, problem))
        if until is not None:
            until.wait()

    threading.Thread(target=answer, daemon=True).start()
    try:
        result, problem = answers.get(timeout=seconds)
    except queue.Empty:
        raise TookTooLong from None
    if problem is not None:
        raise problem
    return result
