"""The benchmark domains by name, for the command line and for studies."""

from collections.abc import Callable
from typing import NamedTuple

from surefoot._arguments import check_listed
from surefoot.domains.cartpole import cartpole
from surefoot.domains.domain import Domain
from surefoot.domains.inventory import inventory
from surefoot.domains.machine import machine_replacement
from surefoot.domains.population import population_growth
from surefoot.domains.riverswim import riverswim


class ListedDomain(NamedTuple):
    """A domain in the catalogue: how to make it, and what it is about in one line."""

    make: Callable[[], Domain]
    about: str


DOMAINS = {
    "riverswim": ListedDomain(riverswim, "swim against the current, or drift"),
    "machine": ListedDomain(machine_replacement, "run a wearing machine, or repair it in time"),
    "population": ListedDomain(population_growth, "keep a pest in check at a price"),
    "inventory": ListedDomain(inventory, "order stock against random demand"),
    "cartpole": ListedDomain(cartpole, "balance a pole on a cart (needs the extra rl)"),
}


def make_domain(name: str) -> Domain:
    """Return the domain of that name with its default settings.

    Examples
    --------
    >>> make_domain("machine").mdp
    MDP(10 states, 2 actions, 20 rows, 45 entries, discount 0.95)
    >>> make_domain("riverswin")
    Traceback (most recent call last):
    ...
    ValueError: there is no domain 'riverswin' (did you mean 'riverswim'?). Choose one of ...
    """
    check_listed("domain", name, DOMAINS)
    return DOMAINS[name].make()


def as_domain(domain: str | Domain) -> Domain:
    """Return the domain of that name in the catalogue, or a given domain unchanged.

    Examples
    --------
    >>> as_domain("machine").name, as_domain(riverswim(discount=0.9)).mdp.discount
    ('machine', 0.9)
    """
    return make_domain(domain) if isinstance(domain, str) else domain
