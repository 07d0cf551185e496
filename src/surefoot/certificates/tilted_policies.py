"""The returns of policies between what was done and what was chosen, by episodes and by model.

In a Markov world the model of the log values every policy correctly, up to chance. If something is
missing from the state, the model still values what was done well (it reproduces the log's own
average), but goes wrong as a policy moves away from that. The log shows how wrong without relying
on the model: weight each episode by how much likelier the other policy would have made it.

For a policy pi and behaviour b, let ``rho_t = prod_{k<=t} pi(a_k|s_k) / b(a_k|s_k)``. The mean over
episodes of ``sum_t discount^t rho_t (r_t + discount v(s_{t+1}) - q(s_t, a_t))`` estimates how much
more pi earns than the model says (v and q are the model's for pi). With v = q = 0 this would be
importance sampling; the model's values remove most of the variance and stand in for what cut
episodes did not show (Jiang and Li 2016).
"""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from surefoot.certificates.evidence import Tilted
from surefoot.model.mdp import MDP
from surefoot.solvers.solver import evaluate

TILTS = (0.0, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0)
"""How far towards the chosen policy: the probability with which it decides instead of behaviour."""
FEWEST = 30.0
"""The fewest effective episodes; policies with fewer are left out."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def tilted_returns(
    mdp: MDP, behaviour: Floats, policy: Ints, *, start: Ints, row: Ints, reward: Floats,
    successor: Ints,
) -> tuple[Tilted, ...]:  # fmt: skip
    """Compare episodes with a model on policies tilted from behaviour towards another policy.

    Parameters
    ----------
    mdp
        The model of the log, without guesses about what the log does not show.
    behaviour
        ``(S, A)``: shares of actions in the log.
    policy
        ``(S,)`` actions; in states where behaviour never took that action, behaviour is kept.
    start
        ``(N+1,)``: episode ``i`` owns the steps ``start[i]:start[i+1]``, in order.
    row, reward, successor
        ``(M,)``: the model's row of each step, its reward and its successor.

    Examples
    --------
    >>> mdp = MDP.from_arrays([[[0.5, 0.5]] * 2] * 2, [[0.0, 1.0]] * 2, discount=0.5)
    >>> rng = np.random.default_rng(0)
    >>> row, successor = rng.integers(2, size=400), rng.integers(2, size=400)
    >>> found = tilted_returns(
    ...     mdp, np.full((2, 2), 0.5), np.array([1, 1]), start=np.arange(401), row=row,
    ...     reward=(row == 1) * 1.0, successor=successor,
    ... )
    >>> [(one.share, one.log == one.model) for one in found if one.share in (0.0, 1.0)]
    [(0.0, True), (1.0, True)]
    """
    state, action = mdp.row_state[row], mdp.row_action[row]
    known = behaviour[np.arange(len(policy)), policy] > 0
    wanted = behaviour.copy()
    wanted[known] = np.eye(behaviour.shape[1])[policy[known]]
    steps = np.arange(len(row)) - np.repeat(start[:-1], np.diff(start))
    found = []
    for share in TILTS:
        tilted = (1.0 - share) * behaviour + share * wanted
        ratio = tilted[state, action] / behaviour[state, action]
        weight = _products(ratio, start)
        final = weight[start[1:][np.diff(start) > 0] - 1]
        effective = float(final.sum() ** 2 / max((final**2).sum(), 1e-300))
        if effective < FEWEST:
            continue
        value = evaluate(mdp, tilted)
        z = mdp.entry_reward + mdp.discount * value.value[mdp.successor]
        quality = np.add.reduceat(mdp.probability * z, mdp.row_start[:-1])
        surprise = reward + mdp.discount * value.value[successor] - quality[row]
        part = mdp.discount**steps * weight * surprise
        each = np.add.reduceat(part, start[:-1][np.diff(start) > 0])
        model = value.return_lower
        found.append(
            Tilted(
                share=share,
                log=model + float(each.mean()),
                error=float(each.std(ddof=1) / np.sqrt(len(each))),
                model=model,
                episodes=effective,
            )
        )
    return tuple(found)


def _products(ratio: Floats, start: Ints) -> Floats:
    """Return, for each step, the product of its episode's ratios up to that step."""
    out = np.empty_like(ratio)
    for first, last in pairwise(start):
        out[first:last] = np.cumprod(ratio[first:last])
    return out
