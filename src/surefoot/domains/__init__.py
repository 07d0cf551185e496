"""Benchmark problems with known true models."""

from surefoot.domains.cartpole import cartpole
from surefoot.domains.domain import Domain
from surefoot.domains.garnet import garnet, river_chain
from surefoot.domains.inventory import inventory
from surefoot.domains.machine import machine_replacement
from surefoot.domains.population import population_growth
from surefoot.domains.riverswim import riverswim

__all__ = [
    "Domain",
    "cartpole",
    "garnet",
    "inventory",
    "machine_replacement",
    "population_growth",
    "river_chain",
    "riverswim",
]
