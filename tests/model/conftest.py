from collections.abc import Callable

import pytest

from surefoot.model.mdp import MDP

ARRAYS = ["state_start", "row_action", "row_start", "successor", "probability", "reward", "initial"]
PLAIN = ["discount", "num_actions", "reward_per_entry", "state_labels", "action_labels"]


@pytest.fixture(scope="session")
def same_model() -> Callable[[MDP, MDP], bool]:
    """Tell whether two models hold the same bits."""

    def same(left: MDP, right: MDP) -> bool:
        arrays = all(
            getattr(left, name).dtype == getattr(right, name).dtype
            and getattr(left, name).tobytes() == getattr(right, name).tobytes()
            for name in ARRAYS
        )
        return arrays and all(getattr(left, name) == getattr(right, name) for name in PLAIN)

    return same
