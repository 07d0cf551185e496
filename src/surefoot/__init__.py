"""From a log of decisions to a policy and a certified lower bound on its return.

The public names, in the order of the pipeline. They are imported on first use, so that the command
line answers at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from surefoot._version import __version__

if TYPE_CHECKING:  # "as" marks a name as exported
    from surefoot._findings import Finding as Finding
    from surefoot.ambiguity.confidence import Confidence as Confidence
    from surefoot.ambiguity.credible import credible_set as credible_set
    from surefoot.ambiguity.frequentist import frequentist_set as frequentist_set
    from surefoot.ambiguity.frequentist import split_counts as split_counts
    from surefoot.ambiguity.sets import AmbiguitySet as AmbiguitySet
    from surefoot.certificates.certificate import Certificate as Certificate
    from surefoot.certificates.certifying import certify as certify
    from surefoot.certificates.comparison import Comparison as Comparison
    from surefoot.certificates.comparison import compare as compare
    from surefoot.certificates.curve import GuaranteeCurve as GuaranteeCurve
    from surefoot.certificates.curve import guarantee_curve as guarantee_curve
    from surefoot.certificates.frequentist import SplitResult as SplitResult
    from surefoot.certificates.frequentist import certify_frequentist as certify_frequentist
    from surefoot.certificates.frequentist import certify_split as certify_split
    from surefoot.certificates.optimize import Candidate as Candidate
    from surefoot.certificates.optimize import Result as Result
    from surefoot.certificates.optimize import optimize as optimize
    from surefoot.certificates.policies import behaviour_policy as behaviour_policy
    from surefoot.certificates.policies import read_policy as read_policy
    from surefoot.certificates.var import VarSolution as VarSolution
    from surefoot.certificates.var import var_solve as var_solve
    from surefoot.certificates.verification import Verification as Verification
    from surefoot.certificates.verification import verify as verify
    from surefoot.data.counting import Counts as Counts
    from surefoot.data.discretization import Discretization as Discretization
    from surefoot.data.discretization import discretize as discretize
    from surefoot.data.rollouts import collect as collect
    from surefoot.data.rollouts import read_minari as read_minari
    from surefoot.data.transitions import read_transitions as read_transitions
    from surefoot.domains.cartpole import cartpole as cartpole
    from surefoot.domains.domain import Domain as Domain
    from surefoot.domains.garnet import garnet as garnet
    from surefoot.domains.garnet import river_chain as river_chain
    from surefoot.domains.inventory import inventory as inventory
    from surefoot.domains.machine import machine_replacement as machine_replacement
    from surefoot.domains.population import population_growth as population_growth
    from surefoot.domains.riverswim import riverswim as riverswim
    from surefoot.model.files import read_mdp as read_mdp
    from surefoot.model.files import write_mdp as write_mdp
    from surefoot.model.mdp import MDP as MDP
    from surefoot.pipeline.loading import load_run as load_run
    from surefoot.pipeline.loading import verify_run as verify_run
    from surefoot.pipeline.running import Run as Run
    from surefoot.pipeline.running import run as run
    from surefoot.pipeline.settings import Settings as Settings
    from surefoot.posterior.dirichlet import DirichletPosterior as DirichletPosterior
    from surefoot.posterior.draws import PosteriorDraws as PosteriorDraws
    from surefoot.posterior.growth import fit_population as fit_population
    from surefoot.posterior.hierarchical import HierarchicalPosterior as HierarchicalPosterior
    from surefoot.posterior.pooled import fit_pooled as fit_pooled
    from surefoot.posterior.protocol import Posterior as Posterior
    from surefoot.solvers.solution import Solution as Solution
    from surefoot.solvers.solution import Status as Status
    from surefoot.solvers.solver import evaluate as evaluate
    from surefoot.solvers.solver import solve as solve
    from surefoot.solvers.worst_case import WorstCase as WorstCase
    from surefoot.solvers.worst_case import loss_bound as loss_bound
    from surefoot.solvers.worst_case import spans as spans
    from surefoot.solvers.worst_case import worst_case as worst_case

_HOMES = {
    "Finding": "_findings",
    "read_transitions": "data.transitions",
    "read_minari": "data.rollouts",
    "collect": "data.rollouts",
    "discretize": "data.discretization",
    "Discretization": "data.discretization",
    "Counts": "data.counting",
    "MDP": "model.mdp",
    "read_mdp": "model.files",
    "write_mdp": "model.files",
    "Posterior": "posterior.protocol",
    "DirichletPosterior": "posterior.dirichlet",
    "PosteriorDraws": "posterior.draws",
    "HierarchicalPosterior": "posterior.hierarchical",
    "fit_pooled": "posterior.pooled",
    "fit_population": "posterior.growth",
    "AmbiguitySet": "ambiguity.sets",
    "WorstCase": "solvers.worst_case",
    "worst_case": "solvers.worst_case",
    "spans": "solvers.worst_case",
    "loss_bound": "solvers.worst_case",
    "Solution": "solvers.solution",
    "Status": "solvers.solution",
    "solve": "solvers.solver",
    "evaluate": "solvers.solver",
    "credible_set": "ambiguity.credible",
    "frequentist_set": "ambiguity.frequentist",
    "split_counts": "ambiguity.frequentist",
    "Confidence": "ambiguity.confidence",
    "var_solve": "certificates.var",
    "VarSolution": "certificates.var",
    "optimize": "certificates.optimize",
    "Result": "certificates.optimize",
    "Candidate": "certificates.optimize",
    "certify_frequentist": "certificates.frequentist",
    "certify_split": "certificates.frequentist",
    "SplitResult": "certificates.frequentist",
    "certify": "certificates.certifying",
    "Certificate": "certificates.certificate",
    "verify": "certificates.verification",
    "Verification": "certificates.verification",
    "compare": "certificates.comparison",
    "Comparison": "certificates.comparison",
    "guarantee_curve": "certificates.curve",
    "GuaranteeCurve": "certificates.curve",
    "behaviour_policy": "certificates.policies",
    "read_policy": "certificates.policies",
    "Settings": "pipeline.settings",
    "run": "pipeline.running",
    "Run": "pipeline.running",
    "load_run": "pipeline.loading",
    "verify_run": "pipeline.loading",
    "Domain": "domains.domain",
    "riverswim": "domains.riverswim",
    "machine_replacement": "domains.machine",
    "population_growth": "domains.population",
    "inventory": "domains.inventory",
    "cartpole": "domains.cartpole",
    "garnet": "domains.garnet",
    "river_chain": "domains.garnet",
}

__all__ = [*_HOMES, "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'surefoot' has no attribute {name!r}")
    value = getattr(import_module(f"surefoot.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
