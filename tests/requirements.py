"""Tests that need something optional: skipped without it, failing where it is required."""

import os
from typing import NoReturn

import pytest


def lacking(what: str, reason: str) -> NoReturn:
    """Skip the test, or fail it where ``SUREFOOT_REQUIRE`` names what is lacking."""
    if what in os.environ.get("SUREFOOT_REQUIRE", "").split(","):
        pytest.fail(f"SUREFOOT_REQUIRE asks for {what}: {reason}")
    pytest.skip(reason)
