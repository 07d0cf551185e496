"""Figures: they take and return axes, keep words and lines apart, and are SVG that stands alone."""

import re
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.figure import Figure

import surefoot
from surefoot import (
    AmbiguitySet,
    Comparison,
    GuaranteeCurve,
    plot_comparison,
    plot_guarantee_curve,
    plot_policy,
    plot_promise,
    plot_returns,
    plot_simplex,
)
from surefoot.report.marks import Mark, arranged
from surefoot.report.policy_plots import plot_flow
from surefoot.report.svg import PALETTE, drawing
from surefoot.report.tables import PolicyLine


def axes(width=4.7):
    return Figure(figsize=(width, 2.9)).add_subplot()


COMPARED = Comparison(
    probability_a_better=0.998, probability_lower_bound=0.996, mean_difference=13.9,
    difference_lower_bound=7.03, delta=0.05, eta=0.001, draws=2000, seed="0",
)  # fmt: skip
CURVE = GuaranteeCurve(
    confidence=np.array([0.5, 0.9, 0.99]), bound=np.array([3.0, 2.0, np.nan]), eta=0.001,
    draws=500, note="",
)  # fmt: skip


def triangle(budget=0.2, norm="l1"):
    mdp = surefoot.MDP.from_arrays(
        np.tile([0.5, 0.3, 0.2], (3, 1, 1)), np.zeros((3, 1)), discount=0.5,
        state_labels=["up", "mid", "down"],
    )  # fmt: skip
    return AmbiguitySet.from_arrays(mdp, norm=norm, budget=budget)


@pytest.fixture(scope="module")
def drawers(demo, pumps):
    draws = np.random.default_rng(0).dirichlet([10, 10, 1], size=50)
    certificate = demo.certificate
    return {
        "promise": lambda a: plot_promise(certificate, axes=a),
        "returns": lambda a: plot_returns(np.arange(500.0), certificate, axes=a),
        "curve": lambda a: plot_guarantee_curve(CURVE, 0.05, axes=a),
        "difference": lambda a: plot_comparison(COMPARED, axes=a),
        "promises": lambda a: plot_comparison({"one": certificate, "two": certificate}, axes=a),
        "list": lambda a: plot_policy(demo.policy, columns=["condition"], axes=a),
        "grid": lambda a: plot_policy(pumps.policy, columns=["age", "vibration"], axes=a),
        "simplex": lambda a: plot_simplex(draws, {"l1": triangle()}, axes=a),
        "flow": lambda a: plot_flow(
            demo.model.mdp, demo.certificate.policy, range(4), colours={}, axes=a
        ),
    }


NAMES = ("promise", "returns", "curve", "difference", "promises", "list", "grid", "simplex", "flow")


@pytest.mark.parametrize("name", NAMES)
def test_figures_take_and_return_axes(drawers, name):
    given = axes()
    assert drawers[name](given) is given
    with drawing(name, 'A "figure" & more', 4.0, 2.0) as drawn:
        drawers[name](drawn.axes)
    used = set(re.findall(r'(?:xlink:href="#|url\(#)([^")]+)', drawn.svg))
    assert used <= set(re.findall(r'id="([^"]+)"', drawn.svg))
    assert 'aria-label="A &quot;figure&quot; &amp; more"' in drawn.svg
    assert "#000000" not in drawn.svg  # words can be read on a dark page
    assert "<image" not in drawn.svg


def test_without_axes_a_figure_is_made(demo):
    from matplotlib import pyplot

    made = plot_promise(demo.certificate)
    assert made.figure.number in pyplot.get_fignums()
    pyplot.close(made.figure)


def test_the_promise_is_drawn_where_it_is(demo):
    made = plot_promise(demo.certificate, axes=axes())
    places = {round(float(line.get_xdata()[0]), 6) for line in made.lines}
    wanted = (demo.certificate.promise, demo.certificate.nominal_return, demo.behaviour.log.mean)
    assert {round(value, 6) for value in wanted} <= places
    words = {text.get_text() for text in made.texts}
    assert any(text.startswith("promised: ") for text in words)
    assert made.get_xlabel() == "total reward, kEUR"


@pytest.mark.parametrize("seed", range(8))
def test_words_do_not_cross_the_lines_of_other_marks(seed):
    given = axes(4.1)
    given.set_xlim(0.0, 10.0)
    places = np.random.default_rng(seed).uniform(0, 10, size=4)
    marks = [Mark("promised: 123.45", float(place), "promise") for place in places]
    made = arranged(given, marks)
    assert sorted(mark.place for mark, _ in made) == sorted(places)
    width = 0.077 * 16 * 10 / (0.9 * 4.1)
    for i, (low, right) in enumerate(made):
        ends = (low.place, low.place + width) if right else (low.place - width, low.place)
        higher = [mark.place for mark, _ in made[i + 1 :]]
        assert not [place for place in higher if ends[0] < place < ends[1]]


@pytest.mark.parametrize(
    "returns",
    [
        np.full(100, 2.0),
        np.full(9, 7.0) + 1e-14 * np.arange(9),
        np.full(9, 1e-12),
        np.full(9, -1e300),
    ],
)
def test_returns_that_are_almost_equal_are_no_trouble(returns):
    """Rounding is too narrow a range for sixty bins."""
    assert plot_returns(returns, axes=axes()).patches


def test_a_policy_without_lines_is_refused():
    with pytest.raises(ValueError, match="policy has no lines"):
        plot_policy([])


def test_a_grid_has_its_columns_in_order(pumps):
    made = plot_policy(pumps.policy, columns=["age", "vibration"], axes=axes())
    assert [tick.get_text() for tick in made.get_xticklabels()] == ["a low", "b raised", "c alarm"]
    assert [tick.get_text() for tick in made.get_yticklabels()] == ["new", "old"]
    assert made.get_ylim()[0] > made.get_ylim()[1]  # the first one on top


def test_a_randomised_policy_shows_what_is_most_likely():
    def line(action, probability):
        return PolicyLine(state="s", action=action, probability=probability, visits=1, margin=None)

    made = plot_policy([line("a", 0.25), line("b", 0.75)], axes=axes())
    assert [text.get_text() for text in made.texts] == ["b"]


@pytest.mark.parametrize(("norm", "budget"), [("l1", 0.2), ("linf", 0.1), ("kl", 0.05)])
def test_the_outline_of_a_set_is_its_edge(norm, budget):
    from surefoot.ambiguity.sets import contains
    from surefoot.report.simplex_plot import _beyond

    chosen = triangle(budget, norm)
    points = np.random.default_rng(1).dirichlet([1, 1, 1], size=40)
    beyond = _beyond(chosen, 0, points)
    for p, far in zip(points, beyond, strict=True):
        inside = contains(chosen, np.tile(p, 3))[0]
        assert inside == (far <= 0)


def test_a_triangle_needs_three_corners():
    with pytest.raises(ValueError, match=r"shape \(2, 2\)"):
        plot_simplex(np.eye(2))
    wrong = AmbiguitySet.from_arrays(surefoot.riverswim().mdp, norm="l1", budget=0.1)
    with pytest.raises(ValueError, match="needs a row with 3 successors"):
        plot_simplex(np.eye(3), {"wide": wrong})


def test_cards_have_pictures(demo):
    for shown in (demo, demo.certificate, CURVE, COMPARED):
        card = shown._repr_html_()
        assert "<svg" in card
        assert "aria-label" in card
    first, second = (re.findall(r'id="([^"]+)"', CURVE._repr_html_()) for _ in range(2))
    assert not set(first) & set(second)  # two cards in one notebook
    assert "<svg" not in demo.settings._repr_html_()


def test_colours_are_variables():
    with drawing("line", "A line") as drawn:
        drawn.axes.plot([0, 1], color=PALETTE["promise"])
    assert f"var(--promise, {PALETTE['promise']})" in drawn.svg
    assert "var(--ink, currentColor)" in drawn.svg
    assert all(a < b for a, b in pairwise(sorted(PALETTE)))


def test_a_run_in_place_of_its_lines_is_told_what_to_pass(demo):
    with pytest.raises(ValueError, match=r"plot_policy\(run.policy\)"):
        plot_policy(demo)
    with pytest.raises(ValueError, match="certificates by name, got Run"):
        plot_comparison(demo)
