"""Run folders that version 0.1 wrote: they stay readable."""

import json
from pathlib import Path

import numpy as np
import pytest

from surefoot import Certificate, Counts, load_run, verify_run
from surefoot.certificates.certificate import EARLY_IN_FORMAT_1

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
def test_a_certificate_of_version_0_1_says_the_same(name):
    certificate = Certificate.load(FIXTURES / name / "certificate.json")
    kept = json.loads((FIXTURES / name / "certificate.json").read_text())
    assert certificate.sentence == kept["sentence"]
    assert list(certificate.assumptions) == kept["assumptions"]
    assert list(certificate.warnings) == kept["warnings"]
    assert certificate.gain is None  # its comparison with the log is not to be trusted
    again = Certificate.from_json(certificate.to_json())
    assert again.sentence == certificate.sentence
    assert json.loads(again.to_json())["format"] == 2


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_of_version_0_1_cannot_be_verified_and_it_is_said_why(name):
    with pytest.raises(ValueError, match=r"version 0\.1 wrote none"):
        verify_run(FIXTURES / name, np.random.default_rng(0))


def test_format_1_said_in_words_that_the_search_was_stopped():
    kept = json.loads((FIXTURES / "rewards" / "certificate.json").read_text())
    kept["notes"] = [EARLY_IN_FORMAT_1, "something else."]
    certificate = Certificate.from_json(json.dumps(kept))
    assert certificate.has("stopped_early")
    assert "something else." in certificate.notes


@pytest.mark.parametrize("name", NAMES)
def test_counts_of_version_0_1_load(name):
    counts = Counts.load(FIXTURES / name / "counts.npz")
    assert int(counts.count.sum()) == 4120
    assert (counts.num_states, counts.num_actions) == (10, 2)
