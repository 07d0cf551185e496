"""The map of a rule has room for long labels; matplotlib warns where it has not."""

import pytest

from surefoot.pipeline.figures import policy_map
from surefoot.report.tables import PolicyLine

BINS = ["pressure below 130", "pressure 130-140", "pressure 140-150", "pressure 150 or more"]
LONG = [f"a rather long name of a place, number {i}" for i in range(6)]


@pytest.mark.parametrize("across", [BINS, LONG], ids=["bins", "long"])
def test_long_labels_fit(across):
    lines = [
        PolicyLine(state=(age, one), action="mild", probability=1.0, visits=3, margin=None)
        for age in ("age below 65", "age 65 or more")
        for one in across
    ]
    drawn = policy_map(lines, ("age", "pressure"))
    assert drawn is not None
    assert ">130-140<" in drawn.svg or ">a rather long name of a place, number 3<" in drawn.svg
