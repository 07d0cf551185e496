"""Storm's robust value iteration on an interval model.

Storm has no discount: with probability ``1 - discount`` every step leads to an absorbing end, and
the reward collected until then is the discounted one. It wants every lower bound above zero; the
smallest we give it moves values by less than 1e-7. It answers with a lower bound at best, so
nothing is certified.
"""

from typing import Any

import numpy as np

from benchmarks.cases import Case
from benchmarks.contenders import TOLERANCE, Answer, Job
from benchmarks.truth import Truth

SMALLEST_LOWER = 1e-13


def storm_intervals(case: Case, _: Truth) -> Job:
    """Return Storm's maximal expected reward against the worst model of the boxes."""
    import stormpy
    from stormpy import developer, environments

    developer.set_log_level(developer.LogLevel.ERR)  # it warns at every solve that it falls back
    model = _interval_model(case)
    question = stormpy.parse_properties('R{"gain"}max=? [F "end"]')[0]
    environment = environments.sound()
    settings = environment.solver().min_max()
    settings.precision = stormpy.Rational(TOLERANCE)
    settings.relative_termination_criterion = False

    def job() -> Answer:
        found = stormpy.model_checking(
            model,
            question,
            uncertainty_resolution_mode=stormpy.UncertaintyResolutionMode.ROBUST,
            environment=environment,
        )
        return Answer(value=np.array(found.get_value_vector())[:-1])

    return job


def _interval_model(case: Case) -> Any:
    """Build the model entry by entry, the only way into Storm."""
    from stormpy import Interval
    from stormpy.models import (
        SparseMdp,
        SparseModelComponents,
        SparseRewardModel,
        StateLabeling,
    )

    mdp, end = case.mdp, case.mdp.num_states
    labels = StateLabeling(end + 1)
    labels.add_label("init")
    labels.add_label_to_state("init", 0)
    labels.add_label("end")
    labels.add_label_to_state("end", end)
    gains = [Interval(reward, reward) for reward in [*mdp.reward.tolist(), 0.0]]
    parts = SparseModelComponents[Interval](
        transition_matrix=_interval_matrix(case),
        state_labeling=labels,
        reward_models={
            "gain": SparseRewardModel[Interval](optional_state_action_reward_vector=gains)
        },
    )
    return SparseMdp[Interval](parts)


def _interval_matrix(case: Case) -> Any:
    from stormpy import Interval
    from stormpy.datastructures import SparseMatrixBuilder

    mdp = case.mdp
    end = mdp.num_states
    lower = (mdp.discount * np.maximum(case.lower, SMALLEST_LOWER)).tolist()
    upper = (mdp.discount * case.upper).tolist()
    columns, starts = mdp.successor.tolist(), mdp.row_start.tolist()
    first_rows = mdp.state_start.tolist()
    leave = Interval(1 - mdp.discount, 1 - mdp.discount)
    builder = SparseMatrixBuilder[Interval](
        rows=mdp.num_rows + 1,
        columns=end + 1,
        entries=mdp.num_entries + mdp.num_rows + 1,
        has_custom_row_grouping=True,
        row_groups=end + 1,
    )
    for state in range(end):
        builder.new_row_group(first_rows[state])
        for row in range(first_rows[state], first_rows[state + 1]):
            for at in range(starts[row], starts[row + 1]):
                builder.add_next_value(row, columns[at], Interval(lower[at], upper[at]))
            builder.add_next_value(row, end, leave)
    builder.new_row_group(mdp.num_rows)
    builder.add_next_value(mdp.num_rows, end, Interval(1.0, 1.0))
    return builder.build()
