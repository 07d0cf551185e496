"""The page: whole without a network, and nothing from a log is markup."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from surefoot import Candidate
from surefoot._display import Grid
from surefoot.report import plots
from surefoot.report.page import SHOWN, Figure, Page
from surefoot.report.tables import PolicyLine

EVIL = "<script>alert('x')</script>"


def page(**changes):
    line = PolicyLine(state=EVIL, action="run & hide", probability=1.0, visits=1200, margin=-0.5)
    content = {
        "title": "Title",
        "subtitle": EVIL,
        "sentence": f"Promise {EVIL}",
        "comparison": "",
        "numbers": {"promised": "1"},
        "warnings": (EVIL,),
        "notes": (EVIL,),
        "assumptions": (EVIL,),
        "tables": [("Caption", Grid(head=("doubt", "amount"), rows=[(EVIL, "1.5")], total=1))],
        "figures": (),
        "policy": (line,),
        "no_advice": 2,
        "candidates": (
            (
                Candidate(name=EVIL, percentile=1.0, nominal_return=2.0, selected=True),
                Candidate(name="b", percentile=1.0, nominal_return=2.0, selected=False),
            ),
        ),
        "percentile": "Words.",
        "facts": (("seed", EVIL),),
        "log": [EVIL],
        "config": EVIL,
    }
    return Page(**(content | changes)).to_html()


class Balanced(HTMLParser):
    VOID = frozenset({"meta", "br", "path", "use"})

    def __init__(self):
        super().__init__()
        self.open, self.ids = [], []

    def handle_starttag(self, tag, attrs):
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag


def figures():
    rng = np.random.default_rng(0)
    marks = [("promise", -1.0, plots.ORANGE), ("nominal", 0.5, plots.GREEN)]
    bound = np.array([3.0, 2.0, np.nan])
    return [
        plots.distribution(rng.normal(size=500), marks, unit="return", bracket=(-1.0, 0.5)),
        plots.bracket(marks, unit="return"),
        plots.curve(np.array([0.5, 0.9, 0.99]), bound, 0.05, unit="return"),
        plots.visits(np.array([1, 5, 100]), np.array([5])),
        plots.candidates([(1.0, 2.0, True), (2.0, 1.0, False)], unit="return"),
    ]


def test_nothing_from_outside_is_markup():
    html = page()
    assert "<script" not in html
    assert html.count("&lt;script&gt;") == 11
    assert "run &amp; hide" in html
    assert "1,200" in html
    assert "no advice" in html


def test_the_page_needs_no_network_and_is_well_formed():
    html = page(figures=[Figure(svg=svg, caption="Caption") for svg in figures()])
    names = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert set(re.findall(r"https?://[^\"'<> ]+", html)) <= names
    assert "url(http" not in html
    parser = Balanced()
    parser.feed(html)
    assert parser.open == []
    assert len(parser.ids) == len(set(parser.ids))


def test_references_inside_figures_lead_somewhere():
    for svg in figures():
        used = set(re.findall(r'(?:xlink:href="#|url\(#)([^")]+)', svg))
        assert used <= set(re.findall(r'id="([^"]+)"', svg))
        assert "<title>" in svg


def test_equal_numbers_are_no_trouble():
    assert "<svg" in plots.distribution(np.full(100, 2.0), [("promise", 2.0, "#000")], unit="r")
    assert "<svg" in plots.visits(np.array([0]), np.array([0]))


@pytest.mark.parametrize(
    "returns", [np.full(9, 7.0) + 1e-14 * np.arange(9), np.full(9, 1e-12), np.full(9, -1e300)]
)
def test_returns_that_are_almost_equal_are_no_trouble(returns):
    """Rounding is too narrow a range for sixty bins."""
    marks = [("promise", float(returns.min()), plots.ORANGE)]
    assert "<svg" in plots.distribution(returns, marks, unit="return")


def test_long_policies_are_cut_and_it_is_said():
    line = PolicyLine(state="s", action="a", probability=0.25, visits=1, margin=None)
    html = page(policy=(line,) * (SHOWN + 5))
    assert html.count("<td>s</td>") == SHOWN
    assert f"all\n{SHOWN + 5}" in html
    assert "25%" in html


def test_words_do_not_cross_the_lines_of_other_marks():
    from surefoot.report.plots import _figure, _lowest_first

    _, axes = _figure()
    axes.set_xlim(0.0, 10.0)
    marks = [("a", 1.0, "#000"), ("b", 2.0, "#000"), ("c", 8.0, "#000"), ("d", 9.0, "#000")]
    assert [words for words, _, _ in _lowest_first(axes, marks)] == ["b", "a", "c", "d"]


def test_candidates_that_came_to_the_same_are_one_line():
    html = page()
    assert "and 1 more with the same" in html
