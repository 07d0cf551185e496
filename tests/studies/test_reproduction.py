"""The reproduction in small: what the tables must show, and the cache."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest

from surefoot.ambiguity.sets import AmbiguitySet
from surefoot.cli import main
from surefoot.domains import machine_replacement, population_growth, riverswim
from surefoot.posterior.dirichlet import DirichletPosterior
from surefoot.solvers.solver import solve
from surefoot.studies import cells, data_set, paper_setting, reproduction
from surefoot.studies.published import METHODS, Method
from surefoot.studies.reproduction import reproduce
from surefoot.studies.reproduction_job import reproduce_to
from surefoot.studies.reproduction_page import page
from surefoot.studies.reproduction_tables import markdown_lines
from surefoot.studies.request import Request

SEEDS = 12


def means(found, setting="paper"):
    return {(line.method, line.delta): line.ours[setting] for line in found.lines}


@pytest.fixture(scope="module")
def river():
    return means(reproduce(Request(domains=("riverswim",), settings=("paper",), seeds=SEEDS)))


@pytest.fixture(scope="module")
def machine():
    return means(reproduce(Request(domains=("machine",), settings=("paper",), seeds=3)))


@pytest.mark.parametrize(
    ("method", "published"),
    [
        (Method("bayesian", "l1", "uniform"), (33887, 25252)),
        (Method("bayesian", "linf", "uniform"), (33887, 25252)),
        (Method("frequentist", "l1", "uniform"), (16354, 12555)),
        (Method("frequentist", "linf", "uniform"), (20055, 15184)),
    ],
)
def test_riverswim_uniform_columns_are_matched(river, method, published):
    """The published number is one data set, ours a mean of twelve.

    Their difference has variance sd^2 (1 + 1/12). Two standard deviations are allowed, with sd
    the larger of ours and 8% (a low draw of a standard deviation must not fail the test).
    """
    for delta, number in zip((0.5, 0.05), published, strict=True):
        ours = river[method, delta]
        sd = max(ours.sd, 0.08 * number)
        assert abs(ours.mean - number) < 2 * sd * np.sqrt(1 + 1 / SEEDS)
        assert ours.sd < 0.3 * number  # or the test above would say nothing


@pytest.mark.parametrize("make", [riverswim, machine_replacement])
def test_bayesian_norms_agree_where_rows_have_three_successors(make):
    """With two or three successors, L1 and L-infinity balls with equal weights are the same."""
    domain, rng = make(), np.random.default_rng(5)
    assert np.diff(domain.mdp.row_start).max() == 3
    draws = DirichletPosterior(domain.simulate(50, rng), prior=1.0).sample(1000, rng)
    mdp = paper_setting.nominal_of_draws(draws, domain.mdp)
    for delta in (0.5, 0.05):
        returns = []
        for norm in ("l1", "linf"):
            method = Method("bayesian", norm, "uniform")
            made = paper_setting.paper_bayesian_set(draws, mdp, mdp.probability, method, delta)
            returns.append(solve(mdp, made, tolerance=1e-7).return_lower)
        assert returns[0] == pytest.approx(returns[1], rel=1e-10)


def test_printed_bayesian_norms_agree(river, machine):
    for found in (river, machine):
        for delta in (0.5, 0.05):
            one = found[Method("bayesian", "l1", "uniform"), delta].mean
            other = found[Method("bayesian", "linf", "uniform"), delta].mean
            # A cell is solved to a millionth of the largest possible return.
            assert one == pytest.approx(other, abs=1.0 if found is river else 4e-4)


def test_consistent_weights_do_not_reach_the_published_optimised_columns(river):
    for norm, published in (("l1", 47284), ("linf", 43247)):
        ours = river[Method("bayesian", norm, "analytic"), 0.05]
        assert ours.mean + 2 * ours.sd < published


def test_twenty_draws_cannot_tell_two_deltas_apart(machine):
    """The paper prints -38.1 and -42.0; its index is the largest of 20 draws for both."""
    uniform = Method("bayesian", "l1", "uniform")
    assert machine[uniform, 0.5].mean == machine[uniform, 0.05].mean
    for delta in (0.5, 0.05):
        assert paper_setting.order_statistic(20, delta, 20) == 20


def test_worst_case_over_the_support_of_population():
    mdp = population_growth().mdp
    everything = AmbiguitySet(mdp=mdp, norm="l1", budget=np.full(mdp.num_rows, 2.0))
    found = solve(mdp, everything, algorithm="value_iteration")
    assert found.return_lower == pytest.approx(-27482, abs=1)


def test_paper_budgets_by_brute_force():
    """The order statistic and the Hoeffding sum, written out."""
    mdp = riverswim().mdp
    rng = np.random.default_rng(0)
    draws = rng.dirichlet(np.ones(3), size=50)
    row = slice(mdp.row_start[3], mdp.row_start[4])
    assert row.stop - row.start == 3
    every = np.tile(mdp.probability, (50, 1))
    every[:, row] = draws
    weights = np.ones(mdp.num_entries)
    weights[row] = (0.2, 0.5, 0.8)
    budget = paper_setting.paper_credible_budget(every, mdp, "l1", weights, 0.5)
    by_hand = sorted(np.abs(draws - mdp.probability[row]) @ weights[row])
    assert budget[3] == by_hand[int(np.ceil((1 - 0.5 / 12) * 50)) - 1]
    psi = paper_setting.paper_frequentist_budget(100, mdp, "linf", weights, 0.05)[3]
    padded = np.array([0.2, 0.5, 0.8, 0.2, 0.2, 0.2])
    assert 2 * 12 * np.exp(-2 * psi**2 * 100 / padded**2).sum() == pytest.approx(0.05, rel=1e-6)
    psi = paper_setting.paper_frequentist_budget(100, mdp, "l1", weights, 0.05)[3]
    ordered = np.sort(padded)[::-1][:5]
    terms = 2.0 ** np.arange(5, 0, -1) * np.exp(-(psi**2) * 100 / (2 * ordered**2))
    assert 2 * 12 * terms.sum() == pytest.approx(0.05, rel=1e-6)
    psi = paper_setting.paper_frequentist_budget(100, mdp, "l1", weights, 0.05, "bernstein")[3]
    exponent = -3 * 100 * psi**2 / (6 * ordered**2 + 4 * psi * ordered)
    terms = 2.0 ** np.arange(5, 0, -1) * np.exp(exponent)
    assert 2 * 12 * terms.sum() == pytest.approx(0.05, rel=1e-6)


def test_valid_sets_carry_their_confidence():
    for method in METHODS:
        cell = cells.TableCell(
            setting="valid", domain="machine", method=method, delta=0.05, samples=20, draws=0,
            seed=0,
        )  # fmt: skip
        known = machine_replacement()
        data = data_set.DataSet(
            cell=cell, domain=known, counts=known.simulate(20, cell.rng(0)),
            clock=data_set.Clock(),
        )  # fmt: skip
        made, draws = data_set.BUILDERS["valid", method.basis](data, cell)
        assert made.confidence.delta == 0.05
        assert made.confidence.basis == method.basis
        assert (draws >= 10_000) == (method.basis == "bayesian")
        assert not any("no proof" in said for said in made.confidence.assumptions)


def test_both_settings_see_the_same_data():
    cell = next(iter(Request(domains=("machine",)).cells()))
    other = replace(cell, setting="valid", delta=0.5)
    assert cell.rng(0).random() == other.rng(0).random()
    assert cell.rng(0).random() != cell.rng(1).random()
    assert replace(cell, seed=1).rng(0).random() != cell.rng(0).random()


SMALL = Request(
    domains=("machine",), settings=("paper",), bases=("bayesian",), deltas=(0.05,), seeds=2
)


def test_cells_are_kept_and_a_run_goes_on_where_it_stopped(tmp_path, monkeypatch):
    first = reproduce(SMALL, tmp_path)
    assert len(list(tmp_path.iterdir())) == len(first.outcomes) == 10
    lost = next(iter(first.outcomes))
    (tmp_path / lost.file_name).unlink()
    damaged = list(first.outcomes)[-1]
    (tmp_path / damaged.file_name).write_text('{"format": 1, "ce')
    computed = []

    def watched(missing, *options):
        computed.extend(missing)
        return data_set.run_data_set(missing, *options)

    monkeypatch.setattr(reproduction, "run_data_set", watched)
    seen = []
    again = reproduce(SMALL, tmp_path, progress=lambda done, what: seen.append((done, what)))
    assert computed == [lost, damaged]
    assert len(seen) == 2
    for cell, outcome in first.outcomes.items():
        assert again.outcomes[cell].guarantee == outcome.guarantee


def test_results_of_other_versions_are_computed_again(tmp_path, monkeypatch):
    [cell, *_] = SMALL.cells()
    outcome = cells.CellResult(guarantee=1.0, converged=True, draws=20, seconds={})
    domain = machine_replacement()
    cells.store(tmp_path, cell, domain, outcome)
    assert cells.load(tmp_path, cell, domain) == outcome
    assert cells.load(tmp_path, replace(cell, seed=7), domain) is None
    assert cells.load(tmp_path, cell, machine_replacement(discount=0.9)) is None
    assert cells.load(tmp_path, cell, replace(domain, prior=0.5)) is None
    monkeypatch.setattr(cells, "__version__", "0.0.other")
    assert cells.load(tmp_path, cell, domain) is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"domains": ("mars",)}, "mars"),
        ({"deltas": (float("nan"),)}, "delta"),
        ({"seeds": 0}, "seeds"),
        ({"samples": 0}, "samples"),
        ({"settings": ("loose",)}, "loose"),
        ({"posterior": "normal"}, "choose from dirichlet"),
        ({"prior": 0.0}, "above 0"),
        ({"prior": 1.0, "posterior": "pooled"}, "Leave one"),
    ],
)
def test_bad_requests(options, message):
    with pytest.raises(ValueError, match=message):
        Request(**options)


def test_tables_name_what_has_no_guarantee():
    found = reproduce(SMALL)
    text = "\n".join(markdown_lines(found))
    assert "paper's rules (no guarantee)" in text
    assert "| machine | L1 B, uniform | 0.05 | -42 |" in text
    shown = page(found)
    assert shown.count("<svg") == 2
    assert "no guarantee" in shown
    assert "http" not in shown.replace("http://www.w3.org", "").replace(
        "http://purl.org", ""
    ).replace("http://creativecommons.org", "")


def test_command_writes_everything(capsys, tmp_path):
    arguments = ["reproduce", "--table", "frequentist", "--domain", "machine", "--delta", "0.05"]
    arguments += ["--seeds", "2", "--setting", "both", "--out", str(tmp_path / "new"), "--json"]
    assert main(arguments) == 0
    facts = json.loads(capsys.readouterr().out)
    assert {line["column"] for line in facts["lines"]} == {
        "printed", "published", "paper", "bernstein", "valid",
    }  # fmt: skip
    with (tmp_path / "new" / "reproduction.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 5 * 3 + 3 + 4  # Bernstein's bound is for L1; tables 1 and 2 have four
    assert {row["guaranteed"] for row in rows if row["column"] == "paper"} == {"no"}
    text = (tmp_path / "new" / "reproduction.md").read_text(encoding="utf-8")
    assert "## Example 1" in text
    assert "## machine: weights that do not fit their budgets" in text
    assert (tmp_path / "new" / "reproduction.html").exists()


def test_command_refuses_unknown_choices(capsys):
    assert main(["reproduce", "--table", "third"]) == 1
    assert "bayesian, frequentist, all" in capsys.readouterr().err


def test_what_a_killed_reproduction_left_is_cleared(tmp_path):
    small = Request(
        domains=("machine",), settings=("paper",), bases=("bayesian",), deltas=(0.05,), seeds=1
    )
    (tmp_path / "cells").mkdir()
    left = [tmp_path / ".reproduction.html.wvokq975", tmp_path / "cells" / ".one.json.abcdefgh"]
    other = tmp_path / ".notes.html.wvokq975"
    for path in (*left, other):
        path.touch()
    reproduce_to(tmp_path, small)
    assert not any(path.exists() for path in left)
    assert other.exists()
