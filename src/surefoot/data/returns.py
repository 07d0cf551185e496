"""What the episodes of a log earned, kept so that a later log can go on from there."""

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
"""What an episode is known by, and the kind of its numbers."""
ARRAYS = tuple(KINDS)

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Returns:
    """What each episode earned: hashed labels and sums, no records.

    Attributes
    ----------
    discount, seed, horizon
        What returns were discounted with, what labels were hashed with, and how many steps count
        (None: all).
    identity, earned, steps, ended, reached, until
        ``(N,)``: as in :class:`~surefoot.data.followed_episodes.Episodes`.
    lacking
        Why earlier episodes are not among them; "" where they are.
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
            raise ValueError("the returns of episodes differ in number")
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
        """Add what the last state of each finished episode is worth."""
        last = self.discount ** float(self.horizon or 0) * final[self.reached]
        return replace(self, earned=self.earned + np.where(self.ended, last, 0.0))

    def numbered(self, states: Ints) -> "Returns":
        """Return the same where state ``i`` is called ``states[i]``."""
        if self.reached.max(initial=-1) >= len(states):
            raise ValueError("episodes end in states that the earlier run does not have.")
        return replace(self, reached=np.where(self.reached < 0, -1, states[self.reached]))

    def only(self, some: NDArray[np.bool_]) -> "Returns":
        """Return some of the episodes."""
        return replace(self, **{name: getattr(self, name)[some] for name in ARRAYS})

    def check(self) -> None:
        """Refuse what no log could have shown."""
        for name, kind in KINDS.items():
            if getattr(self, name).dtype.kind != kind:
                raise ValueError(f"{name} holds numbers of another kind")
        known = self.identity
        holds = (
            0 <= self.discount <= 1 and bool((known[1:] > known[:-1]).all())
            and bool(np.isfinite(self.earned).all())
            and bool((self.steps >= 0).all()) and bool((self.reached >= -1).all())
        )  # fmt: skip
        if not holds:
            raise ValueError("some numbers are out of place")

    def save(self, path: Path) -> None:
        """Write them to a file."""
        about = np.array([self.seed, -1 if self.horizon is None else self.horizon], dtype=np.int64)
        arrays: dict[str, Any] = {name: getattr(self, name) for name in ARRAYS}
        with replacing(path, "wb") as file:
            np.savez_compressed(
                file, about=about, discount=np.float64(self.discount),
                lacking=np.array(self.lacking), **arrays,
            )  # fmt: skip

    @classmethod
    def load(cls, path: Path) -> "Returns":
        """Read them back."""
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
    """Episodes that an earlier log began: what they earned, and of which no more can be known."""

    returns: Returns
    closed: NDArray[np.bool_]

    def among(self, identity: NDArray[np.uint64]) -> tuple[NDArray[np.bool_], Ints]:
        """Tell which episodes of a log had begun, and their places here."""
        known = self.returns.identity
        place = np.minimum(np.searchsorted(known, identity), max(len(known) - 1, 0))
        if not len(known):
            return np.zeros(len(identity), dtype=np.bool_), place
        return known[place] == identity, place


def together(
    found: Sequence[Episodes], begun: Begun | None = None, lacking: str = ""
) -> Returns | None:
    """Put the episodes of several files together, and those that began before them.

    Of an episode that stands in several files nothing new is known: which part came first is not.
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
    """Take back what is known of some episodes, to what was known before the log."""
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
