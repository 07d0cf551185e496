"""What the episodes of a log earned, stored so that a later log can continue them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot._atomic import replacing
from surefoot._display import reason_of
from surefoot._rows import Ints, freeze_fields
from surefoot.data.followed_episodes import Episodes

KINDS = {"identity": "u", "earned": "f", "steps": "i", "ended": "b", "reached": "i", "until": "f"}
"""The arrays kept of the episodes, and the NumPy kind of their numbers."""
ARRAYS = tuple(KINDS)

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Returns:
    """What each episode earned: hashed labels and sums, no single steps.

    Attributes
    ----------
    discount, seed, horizon
        The discount of the returns, the seed that labels were hashed with, and the number of steps
        that count (None means all).
    identity, earned, steps, ended, reached, until
        ``(N,)``: as in :class:`~surefoot.data.followed_episodes.Episodes`.
    lacking
        Why earlier episodes are not included; "" where they are.
    """

    discount: float
    seed: int
    horizon: int | None
    identity: NDArray[np.uint64]
    earned: Floats
    steps: Ints
    ended: NDArray[np.bool_]
    reached: Ints
    until: Floats
    lacking: str = ""

    def __post_init__(self) -> None:
        if {getattr(self, name).shape for name in ARRAYS} != {(len(self),)}:
            raise ValueError("the arrays of returns differ in length")
        freeze_fields(self)

    def __len__(self) -> int:
        return len(self.identity)

    @property
    def time_limit(self) -> int | None:
        """The length at which every unfinished episode was cut, where it is the same for all."""
        cut = self.steps[~self.ended]
        same = len(cut) > 0 and cut.min() == cut.max() == self.steps.max()
        return int(cut[0]) if same else None

    def with_final(self, final: Floats) -> "Returns":
        """Return the same with the discounted ``final`` reward of each ended episode added."""
        last = self.discount ** float(self.horizon or 0) * final[self.reached]
        return replace(self, earned=self.earned + np.where(self.ended, last, 0.0))

    def numbered(self, states: Ints) -> "Returns":
        """Return the same with state ids renumbered: id ``i`` becomes ``states[i]``."""
        if self.reached.max(initial=-1) >= len(states):
            raise ValueError("episodes end in states that the earlier run does not have.")
        return replace(self, reached=np.where(self.reached < 0, -1, states[self.reached]))

    def only(self, some: NDArray[np.bool_]) -> "Returns":
        """Return some of the episodes."""
        return replace(self, **{name: getattr(self, name)[some] for name in ARRAYS})

    def check(self) -> None:
        """Refuse numbers that no log could have given."""
        for name, kind in KINDS.items():
            if getattr(self, name).dtype.kind != kind:
                raise ValueError(f"{name} holds the wrong type of numbers")
        known = self.identity
        holds = (
            0 <= self.discount <= 1 and bool((known[1:] > known[:-1]).all())
            and bool(np.isfinite(self.earned).all())
            and bool((self.steps >= 0).all()) and bool((self.reached >= -1).all())
        )  # fmt: skip
        if not holds:
            raise ValueError("some numbers are out of range or out of order")

    def save(self, path: Path) -> None:
        """Write the returns to one ``.npz`` file, without pickles."""
        about = np.array([self.seed, -1 if self.horizon is None else self.horizon], dtype=np.int64)
        arrays: dict[str, Any] = {name: getattr(self, name) for name in ARRAYS}
        with replacing(path, "wb") as file:
            np.savez_compressed(
                file, about=about, discount=np.float64(self.discount),
                lacking=np.array(self.lacking), **arrays,
            )  # fmt: skip

    @classmethod
    def load(cls, path: Path) -> "Returns":
        """Read what :meth:`save` wrote."""
        try:
            with np.load(path, allow_pickle=False) as file:
                seed, horizon = (int(number) for number in file["about"])
                found = cls(
                    discount=float(file["discount"]), seed=seed,
                    horizon=None if horizon < 0 else horizon, lacking=str(file["lacking"]),
                    **{name: file[name] for name in ARRAYS},
                )  # fmt: skip
                found.check()
                return found
        except Exception as problem:  # a damaged file can fail anywhere, in any way
            reason = reason_of(problem)
            raise ValueError(f"{path}: these are not the returns of episodes ({reason}).") from None


class Begun(NamedTuple):
    """Episodes that began in an earlier log: their returns so far, and which cannot continue."""

    returns: Returns
    closed: NDArray[np.bool_]

    def among(self, identity: NDArray[np.uint64]) -> tuple[NDArray[np.bool_], Ints]:
        """Tell which episodes of a log are among these, and their positions here."""
        known = self.returns.identity
        place = np.minimum(np.searchsorted(known, identity), max(len(known) - 1, 0))
        if not len(known):
            return np.zeros(len(identity), dtype=np.bool_), place
        return known[place] == identity, place


def together(
    found: Sequence[Episodes], begun: Begun | None = None, lacking: str = ""
) -> Returns | None:
    """Return the returns of the episodes of several files, and of those that began before them.

    For an episode that occurs in several files, only what was known before is kept: which of its
    parts came first is unknown.
    """
    parts = [Returns(**_fields(one)) for one in found if len(one)]
    if begun is not None:
        inside = [one.identity for one in parts]
        rest = ~np.isin(begun.returns.identity, np.concatenate(inside) if inside else [])
        parts.append(begun.returns.only(rest))
    if not any(map(len, parts)):
        return None
    arrays = {name: np.concatenate([getattr(one, name) for one in parts]) for name in ARRAYS}
    identity, where, often = np.unique(arrays["identity"], return_index=True, return_counts=True)
    own: dict[str, Any] = {name: array[where] for name, array in arrays.items()}
    joined = replace(parts[0], lacking=lacking, **own)
    return joined if (often == 1).all() else _forgotten(joined, identity[often > 1], begun)


def _fields(episodes: Episodes) -> dict[str, Any]:
    names = ("discount", "seed", "horizon", *ARRAYS)
    return {name: getattr(episodes, name) for name in names}


def _forgotten(joined: Returns, twice: NDArray[np.uint64], begun: Begun | None) -> Returns:
    """Reset some episodes to what was known about them before the log."""
    here = np.isin(joined.identity, twice)
    changed: dict[str, Any] = {
        "earned": np.where(here, 0.0, joined.earned), "steps": np.where(here, 0, joined.steps),
        "ended": joined.ended & ~here, "until": np.where(here, np.nan, joined.until),
    }  # fmt: skip
    if begun is not None:
        known, place = begun.among(joined.identity)
        for name in ("earned", "steps", "ended"):
            old = getattr(begun.returns, name)
            changed[name] = np.where(here & known, old[place], changed[name])
    return replace(joined, **changed)
