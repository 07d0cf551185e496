"""Threads that wait for work, and linear algebra that has none of its own."""

import threading
from itertools import count

import numpy as np
import pytest

from surefoot._cores import _openblas, on_threads, plain_blas


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_part_is_done_once(threads: int) -> None:
    done: list[int] = []
    on_threads(done.append, range(100), threads)
    assert sorted(done) == list(range(100))


def test_parts_are_done_side_by_side() -> None:
    """Two parts that wait for each other end only if two threads are at work."""
    both = threading.Barrier(2, timeout=30)
    on_threads(lambda _: both.wait(), range(2), 2)


def test_a_part_that_asks_for_threads_does_its_work_alone() -> None:
    inner: dict[int, set[int]] = {0: set(), 1: set()}

    def work(part: int) -> None:
        on_threads(lambda _: inner[part].add(threading.get_ident()), range(20), 2)

    on_threads(work, range(2), 2)
    assert [len(threads) for threads in inner.values()] == [1, 1]


def test_a_failure_ends_the_work_and_is_told() -> None:
    def work(part: int) -> None:
        if part == 3:
            raise ValueError("three")

    with pytest.raises(ValueError, match="three"):
        on_threads(work, count(), 2)  # parts without end
    done: list[int] = []
    on_threads(done.append, range(2), 2)  # and the threads are there for others
    assert sorted(done) == [0, 1]


def test_linear_algebra_gets_its_threads_back() -> None:
    found = _openblas()
    before = None if found is None else found[0]()
    with plain_blas(), plain_blas():
        np.testing.assert_allclose(np.linalg.solve(2 * np.eye(3), np.ones(3)), 0.5)
        assert found is None or found[0]() == 1
    assert found is None or found[0]() == before


def test_linear_algebra_stays_plain_until_the_last_one_leaves() -> None:
    """Two threads that overlap: the first one out changes nothing for the other."""
    found = _openblas()
    if found is None:
        return
    before = found[0]()
    first, second = plain_blas(), plain_blas()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert found[0]() == 1
    second.__exit__(None, None, None)
    assert found[0]() == before
