"""The page: whole without a network, nothing from a log is markup, and words that people know."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from surefoot import Candidate, Finding
from surefoot._display import Grid
from surefoot._rounding import near_text
from surefoot.pipeline.option_text import as_options
from surefoot.report.assumptions import Assumption
from surefoot.report.page import DoubtRow, Figure, Page
from surefoot.report.rows import rule_rows
from surefoot.report.rule import Change
from surefoot.report.tables import PolicyLine

EVIL = "<script>alert('x')</script>"
FIGURE = Figure(svg="<svg></svg>", caption=EVIL, title=EVIL)
JARGON = re.compile(r"(?i)nominal|percentile|posterior|\bprior\b|budget|bracket|discounted return")


def page(**changes):
    line = PolicyLine(state=EVIL, action=EVIL, probability=1.0, visits=1200, margin=-0.5)
    change = Change(shares=((EVIL, 0.75), ("run & hide", 0.25)), each=1.0, total=2.0)
    content = {
        "title": EVIL,
        "failures": (EVIL,),
        "mismatch": EVIL,
        "rule": EVIL,
        "promise": EVIL,
        "before": EVIL,
        "picture": FIGURE,
        "narrow": FIGURE,
        "warnings": (EVIL,),
        "notes": (EVIL,),
        "about_rule": EVIL,
        "columns": (EVIL,),
        "rows": rule_rows([line], {EVIL: change}, 1),
        "num_states": 1,
        "no_advice": 2,
        "gain_word": "gain",
        "map": FIGURE,
        "assumptions": (Assumption(EVIL, EVIL),),
        "doubt": EVIL,
        "causes": (DoubtRow(words=EVIL, amount=EVIL, width=50.0, without=EVIL),),
        "tables": [(EVIL, Grid(head=("doubt", "amount"), rows=[(EVIL, "1.5")], total=1))],
        "figures": (FIGURE,),
        "glossary": ((EVIL, EVIL),),
        "sentence": EVIL,
        "comparison": EVIL,
        "candidates": (
            (
                Candidate(name=EVIL, percentile=1.0, nominal_return=2.0, selected=True),
                Candidate(name="b", percentile=1.0, nominal_return=2.0, selected=False),
            ),
        ),
        "percentile": EVIL,
        "facts": (("seed", EVIL),),
        "log": [EVIL],
        "config": EVIL,
    }
    return Page(**(content | changes)).to_html()


class Balanced(HTMLParser):
    VOID = frozenset({"meta", "br", "path", "use", "link"})

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.unnamed, self.scripts = [], [], 0, 0

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.ids += [value for name, value in attrs if name == "id"]
        self.unnamed += tag == "svg" and not given.get("aria-label")
        self.scripts += tag == "script"
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag


def parsed(html):
    parser = Balanced()
    parser.feed(html)
    return parser


def head_of(html):
    """Return what a reader sees first, as text."""
    return re.sub(r"<svg.*?</svg>|<[^>]+>", " ", html.split('class="head')[1].split("<h2")[0])


def test_nothing_from_outside_is_markup():
    html = page()
    assert parsed(html).scripts == 1  # our own
    assert "alert('x')" not in html
    assert html.count("&lt;script&gt;") > 25
    assert "run &amp; hide" not in html.split("<style>")[0]


def test_pages_need_no_network_and_are_well_formed(pages):
    names = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    for made in pages.values():
        html = made.to_html()
        assert set(re.findall(r"https?://[^\"'<> ]+", html)) <= names
        assert "default-src &#39;none&#39;" in html
        parser = parsed(html)
        assert parser.open == []
        assert len(parser.ids) == len(set(parser.ids))
        assert parser.unnamed == 0
        assert parser.scripts == 1


def test_the_head_says_what_to_do_what_it_brings_and_what_was_earned(pages, demo):
    head = " ".join(head_of(pages["demo"].to_html()).split())
    assert re.search(r"Repair in .*worn out; otherwise run\.", head)
    assert re.search(r"With 95% confidence this rule earns at least [\d.]+ kEUR, the same as a "
                     r"steady [\d.]+ kEUR per step\.", head)  # fmt: skip
    assert "What was done so far earned 175.3 kEUR (average of 40 episodes)" in head
    assert "7 assumptions , listed below" in head
    assert not JARGON.search(head)


def test_the_head_of_costs(pages):
    head = " ".join(head_of(pages["grid of costs"].to_html()).split())
    assert re.search(r"this rule costs at most [\d.,]+ EUR, the same as a steady [\d.,]+ EUR", head)
    assert re.search(r"What was done so far (would )?cost [\d.,]+ EUR", head)
    assert not JARGON.search(head)


def test_a_mismatch_with_the_log_is_the_first_thing_said(pages):
    html = pages["mismatch"].to_html()
    said = html.index("but 7 according to the model")
    assert html.index("<h1>") < said < html.index('class="rule"')
    assert html.count("but 7 according to the model") == 1


def test_a_withheld_promise_is_the_first_thing_said(pages):
    html = pages["withheld"].to_html()
    head = " ".join(head_of(html).split())
    assert head.index("NOT CERTIFIED") < head.index("Found, but not certified:")
    assert "The next state depends on more than state and action" in head
    assert "If that were not so, with 95% confidence" in head
    assert "With 95%" not in head
    assert "would be promised" in html  # in the picture too
    assert "What could be promised at other levels" not in html
    assert "at least" not in head.split("What was done so far")[1]  # no gain


def test_assumptions_say_what_they_change(pages):
    rests = pages["demo"].assumptions
    assert 4 <= len(rests) <= 8
    assert all(one.text.endswith(".") and one.otherwise.endswith(".") for one in rests)
    assert "shows neither" in rests[0].otherwise
    assert not any(text.startswith("assuming") for one in rests for text in one)


def test_every_warning_and_note_is_on_the_page(pages, demo):
    html = pages["demo"].to_html().replace("&#39;", "'")
    told = [found for found in demo.certificate.findings if found.level in ("note", "warning")]
    beside = [found.text for found in told if found.code != "doubt_by_cause"]
    for text in (*beside, demo.certificate.sentence):
        assert as_options(text) in html
    for cause in pages["demo"].causes:  # the doubt by cause is a section of its own
        assert cause.without in html


def test_gains_by_state_add_up_to_the_whole(demo, pages):
    page = pages["demo"]
    whole = sum(row.gain_order for row in page.rows)
    assert re.search(r"part of the [\d.]+ kEUR expected", page.about_rule)
    assert whole == pytest.approx(
        demo.certificate.nominal_return - demo.behaviour.model.mean, rel=0.2
    )
    assert {row.habit.split()[0] for row in page.rows} == {"run", "repair"}
    assert [row.action for row in page.rows if not row.same] == ["repair", "repair"]


def test_long_policies_are_cut_and_it_is_said(pages):
    html = pages["300 states"].to_html()
    assert html.count("<tr data-find") + html.count('<tr class="same" data-find') == 300
    assert "policy.csv has all 400" in " ".join(html.split())


def test_two_state_columns_are_columns_and_a_map(pages):
    page = pages["grid of costs"]
    assert page.columns == ("age", "vibration")
    assert page.rows[0].state == ("new", "a low")
    assert page.map is not None
    assert "vibration" in page.map.svg
    assert page.gain_word == "saves"
    assert pages["demo"].map is None


def test_causes_of_doubt_are_shown_where_they_are_known(pages, demo):
    html = pages["demo"].to_html()
    doubt = demo.certificate.doubt
    assert "Where the doubt comes from" in html
    assert "Uncertain transition probabilities" in html
    assert near_text(doubt.as_seen) in html
    assert near_text(doubt.transitions.promise_without, 4) in html
    unknown = replace(pages["demo"], doubt="", causes=()).to_html()
    assert "Where the doubt comes from" not in unknown


def test_candidates_that_came_to_the_same_are_one_line():
    assert "and 1 more with the same" in page()


def test_unknown_assumptions_are_said_in_their_own_words(demo):
    from surefoot._findings import stated
    from surefoot.report.assumptions import assumptions

    found = [stated("assuming that pigs fly", "assumption"), Finding.of("rewards_normal")]
    made = assumptions(found, [], first_state="here", prior=None)
    assert made[1] == Assumption("Assuming that pigs fly.", "")
    assert "could not be checked" in made[0].otherwise
    assert len(made) == 5


def test_every_assumption_has_plain_words():
    from surefoot._assumption_texts import PLAIN
    from surefoot._finding_codes import TEXTS

    assert set(PLAIN) == {code for code, text in TEXTS.items() if text.level == "assumption"}
    for code in PLAIN:
        text, otherwise = PLAIN[code]()
        assert text.endswith(".")
        assert otherwise.endswith(".")
