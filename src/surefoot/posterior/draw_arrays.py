"""Convert arrays of drawn models to the entries of a layout."""

import numpy as np
from numpy.typing import ArrayLike

from surefoot._rows import pack
from surefoot.model.mdp import MDP
from surefoot.posterior.rows import Floats, RowLayout

SUM_TOLERANCE = 1e-4
"""How far a drawn row's sum may be from 1 (text files keep few digits); the row is rescaled."""


def arrange(draws: ArrayLike, mdp: MDP | None) -> tuple[RowLayout, Floats]:
    """Return the layout and ``(chains, draws, E)`` with rows that sum to 1."""
    values = np.asarray(draws)
    if values.dtype.kind not in "fiub":
        raise ValueError(f"draws must be numbers, got {values.dtype}.")
    if values.size == 0:
        raise ValueError(f"draws has shape {values.shape}; there must be at least one draw.")
    values = values.astype(np.float64)
    dense = values.ndim in (4, 5)
    if not dense and (mdp is None or values.ndim not in (2, 3)):
        raise ValueError(
            f"draws has shape {values.shape}; it must be (draws, S, A, S) or (chains, draws, S, A, "
            "S), or with mdp= also (draws, E) or (chains, draws, E)."
        )
    if values.ndim in (2, 4):
        values = values[None]
    _check_finite(values)
    layout = RowLayout.of(mdp) if mdp is not None else _layout_of(values)
    if dense:
        values = _entries(values, layout)
    elif values.shape[2] != layout.num_entries:
        raise ValueError(
            f"draws have {values.shape[2]} entries; the model has {layout.num_entries}."
        )
    return layout, _rescaled(values, layout)


def by_chain(values: Floats, mdp: MDP | None) -> Floats:
    """Check that ``(chains, draws, ...)`` holds dense models, or entries of a given model."""
    if values.ndim == 5 or (values.ndim == 3 and mdp is not None):
        return values
    hint = "" if mdp is not None else " Entries in the order of a model need mdp=."
    raise ValueError(
        f"the variable has shape {values.shape[2:]} per draw; it must be (S, A, S).{hint}"
    )


def _check_finite(values: Floats) -> None:
    bad = np.argwhere(~((values >= 0) & (values <= 1 + SUM_TOLERANCE)))
    if len(bad):
        chain, draw, *place = map(int, bad[0])
        raise ValueError(
            f"chain {chain}, draw {draw} holds {values[tuple(bad[0])]} at {place}; probabilities "
            f"lie in [0, 1] ({len(bad)} of {values.size} fail)."
        )


def _layout_of(values: Floats) -> RowLayout:
    """Return the layout whose entries are non-zero in some draw."""
    num_states, num_actions, targets = values.shape[2:]
    if num_states != targets:
        raise ValueError(f"draws are {values.shape[2:]} each; they must be (S, A, S).")
    state, action, successor = np.nonzero(values.any(axis=(0, 1)))
    without = np.setdiff1d(np.arange(num_states), state)
    if len(without):
        raise ValueError(
            f"state {without[0]} has no successor in any draw ({len(without)} such states). A "
            "terminal state is an absorbing state: give it a row that leads to itself."
        )
    rows = pack(state, action, successor, num_states, num_actions)
    return RowLayout(**rows._asdict(), num_actions=num_actions)


def _entries(values: Floats, layout: RowLayout) -> Floats:
    """Return the entries of a layout from dense models; check that no mass lies outside them."""
    shape = (layout.num_states, layout.num_actions, layout.num_states)
    if values.shape[2:] != shape:
        raise ValueError(f"draws are {values.shape[2:]} each; the model is {shape}.")
    outside = np.argwhere(values.any(axis=(0, 1)) & ~layout.support)
    if len(outside):
        s, a, t = map(int, outside[0])
        raise ValueError(
            f"draws give state {s}, action {a}, successor {t} positive probability, which the "
            f"model cannot reach ({len(outside)} such entries). Enlarge the model's support."
        )
    index = (slice(None), slice(None), *layout.dense_index)
    return values[index]


def _rescaled(values: Floats, layout: RowLayout) -> Floats:
    sums = layout.sum_rows(values)
    off = np.argwhere(~(np.abs(sums - 1.0) <= SUM_TOLERANCE))
    if len(off):
        chain, draw, row = map(int, off[0])
        raise ValueError(
            f"chain {chain}, draw {draw}: probabilities of {layout.row_name(row)} sum to "
            f"{sums[chain, draw, row]:.6g}; a row must sum to 1 ({len(off)} of {sums.size} rows "
            "fail)."
        )
    return values / sums[:, :, layout.entry_row]
