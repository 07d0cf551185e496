"""The sepsis simulator of Oberst and Sontag (ICML 2019): two strata, alone or mixed.

The tables come from the MIT-licensed repository clinicalml/gumbel-max-scm; ``data_files/CLINIC.md``
has the licence.
"""

from functools import cache
from importlib.resources import files

import numpy as np
from scipy import sparse

from surefoot.model.mdp import MDP
from surefoot.studies.zoo.worlds import Floats, World

STATES, TREATMENTS = 720, 8
DISCOUNT, STEPS = 0.99, 100
DIABETIC = 0.2
"""Share of diabetic patients in the mixed clinic."""


@cache
def _tables() -> dict[str, np.ndarray]:
    with files("surefoot").joinpath("data_files", "clinic.npz").open("rb") as file:
        return dict(np.load(file))


def clinic(name: str, *, share: float) -> World:
    """Return the clinic with this share of diabetic patients; a log does not show who is diabetic.

    Examples
    --------
    >>> clinic("without diabetes", share=0.0).mdp.num_states
    720
    >>> clinic("mixed", share=0.2).hidden
    True
    """
    strata = [(kind, part) for kind, part in enumerate((1 - share, share)) if part > 0]
    tables = _tables()
    actions = [
        sparse.block_diag([_matrix(kind, action) for kind, _ in strata], format="csr")
        for action in range(TREATMENTS)
    ]
    ends = np.tile(tables["reward"] != 0, len(strata))
    entries = [matrix.tocoo() for matrix in actions]
    state = np.concatenate([e.row for e in entries]).astype(np.int64)
    successor = np.concatenate([e.col for e in entries]).astype(np.int64)
    pay = np.tile(tables["reward"], len(strata))
    mdp = MDP.from_rows(
        state=state,
        action=np.repeat(np.arange(TREATMENTS), [e.nnz for e in entries]),
        successor=successor,
        probability=np.concatenate([e.data for e in entries]),
        reward=np.where(ends[state], 0.0, pay[successor]),
        discount=DISCOUNT,
        initial=_initial(strata),
        num_states=len(ends),
        num_actions=TREATMENTS,
    )
    labels = tuple(range(STATES)) * len(strata)
    return World(name=name, mdp=mdp, terminal=ends, steps=STEPS, states=labels)


def _matrix(kind: int, action: int) -> sparse.csr_array:
    """Return ``(S, S)``: one treatment in one stratum, ends absorbing."""
    tables = _tables()
    whole = sparse.csr_array(
        (tables[f"P{kind}_data"], tables[f"P{kind}_indices"], tables[f"P{kind}_indptr"]),
        shape=(STATES * TREATMENTS, STATES),
    )
    ends = (tables["reward"] != 0).astype(np.float64)
    lives = sparse.diags_array(1.0 - ends)
    block = whole[action * STATES : (action + 1) * STATES]
    made = sparse.csr_array(lives @ block + sparse.diags_array(ends))
    made.eliminate_zeros()
    return made


def _initial(strata: list[tuple[int, float]]) -> Floats:
    initial = _tables()["initial"]
    return np.concatenate([part * initial[kind] for kind, part in strata])
