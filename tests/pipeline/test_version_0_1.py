"""Run folders that version 0.1 wrote: they stay readable."""

import json
from pathlib import Path

import numpy as np
import pytest

from surefoot import Counts, load_run

FIXTURES = Path(__file__).parents[1] / "fixtures" / "version_0_1"
NAMES = sorted(folder.name for folder in FIXTURES.iterdir())


def test_there_are_fixtures():
    assert NAMES == ["costs_bounded", "costs_frequentist", "rewards"]


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_of_version_0_1_loads(name):
    run = load_run(FIXTURES / name)
    kept = json.loads((FIXTURES / name / "certificate.json").read_text())
    assert run.certificate.lower_bound == kept["lower_bound"]
    assert run.certificate.upper_bound == kept["upper_bound"]
    np.testing.assert_array_equal(run.certificate.policy, kept["policy"])


@pytest.mark.parametrize("name", NAMES)
def test_counts_of_version_0_1_load(name):
    counts = Counts.load(FIXTURES / name / "counts.npz")
    assert int(counts.count.sum()) == 4120
    assert (counts.num_states, counts.num_actions) == (10, 2)
