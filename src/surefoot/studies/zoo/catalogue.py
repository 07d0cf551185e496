"""The worlds by name, and which of them may be used for tuning.

The split was made before any method was tuned on the zoo, by family and parameters, so that nothing
in the test half is a reseeded copy of something in the development half. Each kind of difficulty
occurs in both halves, so that it can be worked on in one and tested in the other: rows more
even than a prior expects (Dirichlet 10; Dirichlet 1 with 40 successors), sparse rows, rare
accidents (short road; long road with rarer ones), patients (survival; clinic), hidden strata
(two patient types; mixed clinic), random rewards (Bernoulli, normal; log-normal, catastrophes).
Domains are divided so that each half has one that is easy and one that is hard from a log.

Bets, a queue, an epidemic and offers were added later: promises broke on them and were examined, so
they are development worlds. A fishery and rarer offers joined the test half at the same time,
unexamined. In the same way a ward of 700 states joined development, and a smaller one the test
half.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from surefoot._arguments import check_listed
from surefoot.domains.catalogue import make_domain
from surefoot.studies.zoo import everyday
from surefoot.studies.zoo.chains import accident_chain, survival
from surefoot.studies.zoo.clinic import DIABETIC, clinic
from surefoot.studies.zoo.garnets import dirichlet_garnet
from surefoot.studies.zoo.rewards import RewardLaw
from surefoot.studies.zoo.toy_text import cliff_walk, frozen_lake, taxi
from surefoot.studies.zoo.wards import ward
from surefoot.studies.zoo.worlds import World

DEVELOPMENT, TEST = "development", "test"
SPLITS = (DEVELOPMENT, TEST)

Maker = Callable[[str, np.random.Generator], World]


class ListedWorld(NamedTuple):
    """A world in the catalogue: its half, how to make it, and whether it is drawn at random."""

    split: str
    make: Maker
    random: bool = False


def _domain(domain: str, steps: int = 50, law: RewardLaw | None = None) -> Maker:
    def make(name: str, rng: np.random.Generator) -> World:  # noqa: ARG001
        mdp = make_domain(domain).mdp
        nowhere = np.zeros(mdp.num_states, dtype=np.bool_)
        return World(name=name, mdp=mdp, terminal=nowhere, steps=steps, law=law or RewardLaw())

    return make


def _garnet(
    states: int, actions: int, successors: int, concentration: float, law: RewardLaw | None = None
) -> ListedWorld:
    split = DEVELOPMENT if concentration in (0.3, 10.0) else TEST

    def make(name: str, rng: np.random.Generator) -> World:
        return dirichlet_garnet(
            name, states=states, actions=actions, successors=successors,
            concentration=concentration, law=law, rng=rng,
        )  # fmt: skip

    return ListedWorld(split, make, random=True)


def _fixed(make: Callable[[str], World], law: RewardLaw | None = None) -> Maker:
    def made(name: str, rng: np.random.Generator) -> World:  # noqa: ARG001
        world = make(name)
        return world if law is None else replace(world, law=law)

    return made


def _accidents(length: int, accident: float, safe: float, loss: float) -> Maker:
    return _fixed(
        lambda name: accident_chain(
            name, length=length, accident=accident, safe=safe, loss=loss, discount=0.95, steps=60
        )
    )


_BERNOULLI = RewardLaw(kind="bernoulli", low=0.0, high=1.0)
_CATASTROPHE = RewardLaw(kind="catastrophe", low=-200.0, chance=0.005)

WORLDS = {
    "riverswim": ListedWorld(DEVELOPMENT, _domain("riverswim")),
    "inventory": ListedWorld(DEVELOPMENT, _domain("inventory")),
    "frozen-lake-4x4": ListedWorld(DEVELOPMENT, _fixed(lambda name: frozen_lake(name, size="4x4"))),
    "garnet-.3": _garnet(12, 3, 4, 0.3),
    "garnet-.3-wide": _garnet(40, 3, 15, 0.3),
    "garnet-10": _garnet(10, 4, 5, 10.0),
    "garnet-10-normal": _garnet(10, 4, 5, 10.0, RewardLaw(kind="normal", scale=1.0)),
    "garnet-.3-bernoulli": _garnet(12, 3, 4, 0.3, _BERNOULLI),
    "accident-short": ListedWorld(DEVELOPMENT, _accidents(12, 0.03, 0.003, 4.0)),
    "survival": ListedWorld(DEVELOPMENT, _fixed(survival)),
    "survival-strata": ListedWorld(
        DEVELOPMENT, _fixed(lambda name: survival(name, frailty=(0.4, 1.7)))
    ),
    "gambler": ListedWorld(DEVELOPMENT, _fixed(everyday.gambler)),
    "queue": ListedWorld(DEVELOPMENT, _fixed(everyday.queue)),
    "epidemic": ListedWorld(DEVELOPMENT, _fixed(everyday.epidemic)),
    "offers": ListedWorld(
        DEVELOPMENT,
        _fixed(
            lambda name: everyday.offers(name, people=30, choices=5, chances=(0.2, 0.8), seed=5)
        ),
    ),
    "clinic-0": ListedWorld(DEVELOPMENT, _fixed(lambda name: clinic(name, share=0.0))),
    "ward": ListedWorld(
        DEVELOPMENT,
        _fixed(lambda name: ward(name, states=700, treatments=25, successors=42, seed=0)),
    ),
    "machine": ListedWorld(TEST, _domain("machine")),
    "machine-lognormal": ListedWorld(
        TEST, _domain("machine", law=RewardLaw(kind="lognormal", scale=2.0))
    ),
    "population": ListedWorld(TEST, _domain("population")),
    "cartpole": ListedWorld(TEST, _domain("cartpole", steps=100)),
    "frozen-lake-8x8": ListedWorld(TEST, _fixed(lambda name: frozen_lake(name, size="8x8"))),
    "cliff-walk": ListedWorld(TEST, _fixed(cliff_walk)),
    "taxi": ListedWorld(TEST, _fixed(taxi)),
    "garnet-.1": _garnet(15, 3, 6, 0.1),
    "garnet-.1-two": _garnet(20, 2, 2, 0.1),
    "garnet-1": _garnet(20, 4, 8, 1.0),
    "garnet-1-wide": _garnet(40, 2, 40, 1.0),
    "garnet-1-normal": _garnet(20, 3, 3, 1.0, RewardLaw(kind="normal", scale=0.5)),
    "garnet-1-catastrophe": _garnet(8, 3, 3, 1.0, _CATASTROPHE),
    "accident-long": ListedWorld(TEST, _accidents(30, 0.01, 0.0005, 8.0)),
    "fishery": ListedWorld(TEST, _fixed(everyday.fishery)),
    "offers-rare": ListedWorld(
        TEST,
        _fixed(
            lambda name: everyday.offers(
                name, people=12, choices=8, chances=(0.0, 0.2), pays=(-1.0, 19.0), seed=6
            )
        ),
    ),
    "ward-small": ListedWorld(
        TEST, _fixed(lambda name: ward(name, states=250, treatments=12, successors=20, seed=1))
    ),
    "clinic-1": ListedWorld(TEST, _fixed(lambda name: clinic(name, share=1.0))),
    "clinic-mixed": ListedWorld(TEST, _fixed(lambda name: clinic(name, share=DIABETIC))),
}


def make_world(name: str, seed: int = 0) -> World:
    """Return the world of that name; ``seed`` selects an instance of a random world.

    Examples
    --------
    >>> make_world("survival").mdp.num_states
    10
    >>> make_world("survivor")
    Traceback (most recent call last):
    ...
    ValueError: there is no world 'survivor' (did you mean 'survival'?). Choose one of ...
    """
    check_listed("world", name, WORLDS)
    return WORLDS[name].make(name, np.random.default_rng([seed, 2718]))
