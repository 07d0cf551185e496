"""Whatever the public API returns prints in a line, a summary and a notebook card."""

import inspect
import re
from html.parser import HTMLParser

import numpy as np
import pytest

import surefoot
from surefoot import (
    AmbiguitySet,
    Counts,
    DirichletPosterior,
    Finding,
    LearnedPosterior,
    PosteriorDraws,
    certify,
    certify_split,
    compare,
    credible_set,
    discretize,
    evaluate,
    guarantee_curve,
    machine_replacement,
    optimize,
    solve,
    var_solve,
    verify,
    worst_case,
)
from surefoot._display import MOST_ROWS, Grid, Shown

EVIL = "<img src=x onerror=alert(1)> & 'co'"
WITHOUT = {"Posterior", "Status"}
"""A protocol and an enumeration: nothing to show."""


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def make_everything() -> dict[str, object]:
    domain = machine_replacement()
    drawn = domain.simulate(30, rng())
    shape = (domain.mdp.num_states, domain.mdp.num_actions, domain.mdp.num_states)
    dense, rewards = np.zeros(shape, dtype=int), np.zeros(shape)
    rows = domain.mdp.entry_row
    where = domain.mdp.row_state[rows], domain.mdp.row_action[rows], domain.mdp.successor
    dense[where], rewards[where] = drawn.count, domain.mdp.reward
    labels = [f"{EVIL} {s}" for s in range(shape[0])]
    counts = Counts.from_arrays(
        dense, rewards=rewards, support=domain.support, state_labels=labels, action_labels=[EVIL, 2]
    )
    mdp, posterior = counts.to_mdp(discount=0.95, prior=1.0), DirichletPosterior(counts)
    few = {"draws": 400, "eta": 0.01, "rng": rng()}
    result = optimize(posterior, mdp, **few)
    certificate = certify(result.policy, posterior, mdp, **few)
    credible = credible_set(posterior, mdp, delta=0.2, rng=rng())
    split = certify_split(counts, discount=0.9, delta=0.05, rng=rng(), fixed_design=True)
    return {
        "Counts": counts,
        "MDP": mdp,
        "Domain": domain,
        "DirichletPosterior": posterior,
        "LearnedPosterior": LearnedPosterior(counts),
        "PosteriorDraws": PosteriorDraws.from_arrays(
            posterior.sample(50, rng()), mdp=mdp, independent=True
        ),
        "AmbiguitySet": credible,
        "Confidence": credible.confidence,
        "by hand": AmbiguitySet.from_arrays(mdp, norm="kl", budget=0.1),
        "Solution": solve(mdp, credible),
        "StepPolicy": solve(mdp, horizon=3).policy,
        "by step": solve(mdp, horizon=3),
        "evaluation": evaluate(mdp, np.full((10, 2), 0.5)),
        "WorstCase": worst_case(np.arange(500.0), np.full(500, 1 / 500), budget=0.1),
        "VarSolution": var_solve(posterior, mdp, delta=0.2, rng=rng()),
        "Result": result,
        "Candidate": result.candidates[0],
        "Certificate": certificate,
        "SplitResult": split,
        "Verification": verify(certificate, posterior, mdp, rng=rng()),
        "Finding": Finding.of("memory_seen", p_value=0.001, tried=3, state=EVIL, action="'a'"),
        "Comparison": compare(result.policy, result.policy, posterior, mdp, **few),
        "GuaranteeCurve": guarantee_curve(result.policy, posterior, mdp, **few),
        "Discretization": discretize(rng().normal(size=(100, 3)), bins=2),
    }


@pytest.fixture(scope="module")
def everything():
    return make_everything()


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.seen = [], set()

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_everything_is_short_and_well_formed(everything):
    for name, thing in everything.items():
        assert isinstance(thing, Shown), name
        line = repr(thing)
        assert len(line) < 250, name
        assert "\n" not in line, name
        assert "array(" not in line, name
        assert " at 0x" not in line, name
        summary = thing.summary()
        assert len(summary.splitlines()) < 40, name
        tags = Tags()
        page = re.sub(r"<svg.*?</svg>", "", thing._repr_html_(), flags=re.DOTALL)
        tags.feed(page)
        assert tags.open == [], name
        assert tags.seen <= {"div", "p", "strong", "table", "tr", "th", "td"}, name
        assert "color:" not in page, name  # a notebook may be light or dark


def test_labels_are_escaped(everything):
    for name in ("Counts", "Solution", "Result", "evaluation"):
        page = everything[name]._repr_html_()
        assert "<img" not in page
    assert "&lt;img" in everything["Solution"]._repr_html_()
    assert EVIL in everything["Solution"].summary()


def test_every_public_noun_is_shown(everything):
    nouns = {
        name
        for name in surefoot.__all__
        if inspect.isclass(getattr(surefoot, name)) and name not in WITHOUT
    }
    assert all(issubclass(getattr(surefoot, name), Shown) for name in nouns)
    left = nouns - set(everything)
    assert left <= {
        "HierarchicalPosterior",
        "Settings",
        "Run",
        "Decision",
        "Plan",
    }  # tested elsewhere


def test_printed_bounds_stay_on_the_safe_side(everything):
    certificate = everything["Certificate"]
    words = certificate.sentence.rstrip(".").split()
    promised = float(words[words.index("least") + 1].rstrip(";"))
    assert promised <= certificate.lower_bound
    assert float(words[-1]) >= certificate.upper_bound
    curve = everything["GuaranteeCurve"]
    for bound, row in zip(curve.bound, curve._grid().rows, strict=True):
        assert row[1] == "" or float(row[1]) <= bound


def test_long_tables_are_cut():
    rows = [(str(i), f"{i}") for i in range(MOST_ROWS)]
    grid = Grid(head=("state", "value"), rows=rows, total=1234)
    assert grid.text().splitlines()[-1] == "... and 1,224 more"
    assert "1,224 more" in grid.html()
    assert Grid(head=("a",), rows=rows[:0], total=0).text() == "a"
