"""Promises from logs beside those that know the successors: further from the best."""

import pytest

from surefoot.studies import tightness as study
from surefoot.studies.zoo import methods


def test_knowing_the_successors_brings_a_promise_nearer_to_the_optimum(monkeypatch):
    monkeypatch.setattr(methods, "DRAWS", 300)
    found = study.tightness("machine", logs=2, seed=0)
    assert len(found.learned) == len(found.declared) == 2
    for learned, declared in zip(found.learned, found.declared, strict=True):  # of the same log
        assert learned < declared < found.optimum
    gaps = [
        sum(found.optimum - value for value in ends) for ends in (found.learned, found.declared)
    ]
    assert found.ratio == pytest.approx(gaps[0] / gaps[1])
    assert found.row[0] == "machine"
    assert found.row[-1] == "2.5"
