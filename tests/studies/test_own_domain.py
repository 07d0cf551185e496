"""A domain of one's own goes through tables, mismatch study and coverage in a few lines."""

from dataclasses import replace

import numpy as np
import pytest

from surefoot import DirichletPosterior, Domain, PosteriorDraws, garnet, machine_replacement
from surefoot.cli import main
from surefoot.studies import certificate_coverage, set_coverage
from surefoot.studies.cells import TableCell
from surefoot.studies.data_set import run_data_set
from surefoot.studies.mismatch_tables import mismatch_tables
from surefoot.studies.promises import promises
from surefoot.studies.published import METHODS, Method
from surefoot.studies.reproduction import reproduce
from surefoot.studies.reproduction_job import reproduce_to
from surefoot.studies.reproduction_tables import tables
from surefoot.studies.request import Request
from surefoot.studies.scale_mismatch import scale_mismatch
from surefoot.studies.true_models import from_prior

OWN = Domain(
    name="workshop",
    mdp=replace(machine_replacement().mdp, discount=0.9),
    prior=0.5,
)
SMALL = {"domains": (OWN,), "deltas": (0.05,), "seeds": 2}


def test_a_data_set_takes_any_domain():
    cell = TableCell(
        setting="paper", domain=OWN.name, method=METHODS[0], delta=0.05, samples=20, draws=20,
        seed=0,
    )  # fmt: skip
    [(_, outcome)] = run_data_set([cell], domain=OWN)
    assert -200 < outcome.guarantee < 0


def test_tables_take_any_domain(tmp_path):
    job = reproduce_to(tmp_path, Request(**SMALL, settings=("paper", "bernstein")))
    assert [line.published for line in job.found.lines] == [None] * len(METHODS)
    made = {table.title.split(",")[0]: table for table in job.tables}
    assert any("workshop: every variant" in title for title in made)
    text = (tmp_path / "reproduction.md").read_text(encoding="utf-8")
    assert "| workshop | L1 B, uniform | 0.05 | - |" in text
    assert "workshop" in (tmp_path / "reproduction.html").read_text(encoding="utf-8")


def test_tables_of_own_and_listed_domains_together():
    found = reproduce(Request(domains=("machine", OWN), bases=("bayesian",), settings=("paper",),
                              deltas=(0.05,), seeds=2))  # fmt: skip
    guarantees, losses, *_ = tables(found)
    assert [row[3] for row in guarantees.rows if row[1] == "L1 B, uniform"] == ["-42", "-"]
    assert [row[2] for row in losses.rows if row[1] == "L1 B, uniform"] == ["1.56", "-"]


def test_a_name_with_published_numbers_is_not_for_other_models():
    with pytest.raises(ValueError, match="rename your domain"):
        Request(domains=(replace(OWN, name="riverswim"),))
    with pytest.raises(ValueError, match="given twice"):
        Request(domains=(OWN, OWN))
    with pytest.raises(ValueError, match="letters, digits"):
        Request(domains=(replace(OWN, name="../up"),))


def test_the_prior_reaches_the_sets():
    method = Method("bayesian", "l1", "uniform")
    found = {
        prior: reproduce(Request(**SMALL, bases=("bayesian",), settings=("paper",), prior=prior))
        for prior in (None, 0.5, 5.0)
    }
    means = {prior: one.line("workshop", method).guarantee("paper") for prior, one in found.items()}
    assert means[None] == means[0.5] != means[5.0]


def test_a_posterior_of_ones_own(tmp_path):
    """Draws made by somebody else's program; a function's results are not kept."""
    calls = []

    def elsewhere(counts, domain, rng):
        calls.append(domain.name)
        drawn = DirichletPosterior(counts, prior=domain.prior).sample(400, rng)
        return PosteriorDraws.from_arrays(drawn, mdp=domain.mdp)

    request = Request(**SMALL, bases=("bayesian",), settings=("paper",), posterior=elsewhere)
    for _ in range(2):
        found = reproduce(request, tmp_path)
        assert len(found.lines) == 5
    assert calls == ["workshop"] * 4  # two data sets, twice
    assert not list(tmp_path.iterdir())


def test_the_mismatch_study_takes_any_domain():
    found = scale_mismatch(OWN, 2, fresh=50)
    assert {one.published for one in found} == {None}
    short, full = mismatch_tables(found)
    assert short.remarks == ()
    assert len(full.rows) == len(found) == 32


@pytest.fixture(scope="module")
def promised():
    return promises(OWN, 20, delta=0.2, seed=0)


def test_promises_take_any_domain(promised):
    found = promised
    assert found.domain == "workshop"
    assert found.row[2] == "-"
    assert found.certificate <= found.upper


def test_a_var_promise_below_the_robust_one_says_why(promised):
    found = promised
    strong = replace(found, var=max(found.robust_uniform, found.robust_optimised) + 1)
    assert strong.remark == ""
    assert strong.row[5] != "-"
    weak = replace(found, var=min(found.robust_uniform, found.robust_optimised) - 1)
    assert weak.row[5] == "-"
    assert "divided by 1 - discount = 0.1" in weak.remark
    assert "too many draws" in replace(found, var=None).remark


def test_coverage_uses_the_prior_of_the_domain():
    """With its own prior a claim at .2 holds; a truth from another prior is another matter."""
    world = replace(OWN, prior=0.1)
    truths = [from_prior(world, np.random.default_rng(seed)).mdp.probability for seed in range(20)]
    assert np.mean([p.max() for p in truths]) > 0.99  # nearly certain rows, as the prior says
    rng = np.random.default_rng(0)
    study = certificate_coverage.study(
        world, samples=5, replications=25, delta=0.2, draws=300, rng=rng
    )
    assert study.holds
    cases = [case for case in set_coverage.CASES if case.name == "L1, uniform"]
    [tally] = set_coverage.study(world, samples=5, replications=25, delta=0.2, rng=rng, cases=cases)
    assert not tally.refuted


def test_a_random_model_is_a_domain_like_any_other():
    model = garnet(5, 2, 3, discount=0.9, rng=np.random.default_rng(0))
    world = model if isinstance(model, Domain) else Domain(name="garnet", mdp=model)
    found = reproduce(Request(domains=(replace(world, name="mine"),), settings=("paper",), seeds=2))
    assert all(line.ours["paper"].data_sets == 2 for line in found.lines)


def test_the_command_has_a_prior_and_a_posterior(tmp_path, capsys):
    arguments = ["reproduce", "--table", "bayesian", "--domain", "machine", "--delta", "0.05"]
    arguments += ["--seeds", "1", "--setting", "paper", "--out", str(tmp_path), "--quiet"]
    assert main([*arguments, "--prior", "0.5"]) == 0
    assert main([*arguments, "--posterior", "normal"]) == 1
    assert "choose from dirichlet, pooled, growth" in capsys.readouterr().err
