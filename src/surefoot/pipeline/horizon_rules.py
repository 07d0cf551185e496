"""Which settings go with a horizon, and with each other."""

from typing import Any


def check_steps(settings: Any) -> None:
    """Refuse what has a meaning only with a horizon."""
    for name in ("final_reward", "stationary", "by_step"):
        if settings.horizon is None and getattr(settings, name):
            value = getattr(settings, name)
            raise ValueError(
                f"{name}={value!r} goes with a horizon: say with horizon= how many steps count."
            )
    if settings.by_step and settings.stationary:
        raise ValueError("by_step=True and stationary=True contradict each other: choose one.")
    if settings.by_step and (settings.episode is None or settings.step is None):
        raise ValueError("by_step=True needs episode= and step=, to know the step of each row.")
    if settings.by_step and (settings.count is not None or settings.add is not None):
        raise ValueError("by_step=True needs every row of the log: no count=, no add=.")
    if settings.by_step and settings.bins:
        raise ValueError("by_step=True and bins= do not go together: cut the columns beforehand.")
    if settings.by_step and settings.reward_table is not None:
        raise ValueError("by_step=True takes rewards from the log: leave out reward_table=.")
