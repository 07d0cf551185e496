"""Benchmark problems with known true models."""

from surefoot.domains.domain import Domain
from surefoot.domains.garnet import garnet, river_chain
from surefoot.domains.machine import machine_replacement
from surefoot.domains.riverswim import riverswim

__all__ = ["Domain", "garnet", "machine_replacement", "river_chain", "riverswim"]
