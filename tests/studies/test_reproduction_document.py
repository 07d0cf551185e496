"""docs/reproduction.md: what it derives follows from the guarantees it shows."""

import re
from pathlib import Path

import pytest

from surefoot.domains.catalogue import make_domain
from surefoot.studies.example_one import example_one, example_table
from surefoot.studies.published import METHODS, NOMINAL
from surefoot.studies.reproduction import PublishedLine, Reproduction, Spread, nominal_return
from surefoot.studies.reproduction_tables import gains, improvements, losses
from surefoot.studies.request import Request
from surefoot.studies.table import markdown_table

DOCUMENT = Path(__file__).parents[2] / "docs" / "reproduction.md"
BY_TITLE = {method.title: method for method in METHODS}


def shown_lines(text):
    """Return the guarantees of the document: published, paper, Bernstein, valid."""
    nominal = {name: nominal_return(make_domain(name).mdp) for name in NOMINAL}
    lines = []
    for row in re.findall(r"^\| (.*) \|$", text, flags=re.MULTILINE):
        domain, *cells = row.split(" | ")
        if domain in NOMINAL and len(cells) == 6 and cells[0] in BY_TITLE and "±" in cells[3]:
            title, delta, published, *ours = cells
            found = {
                setting: _spread(cell)
                for setting, cell in zip(("paper", "bernstein", "valid"), ours, strict=True)
                if cell != "-"
            }
            lines.append(
                PublishedLine(
                    domain=domain, method=BY_TITLE[title], delta=float(delta),
                    nominal=nominal[domain], published=float(published), ours=found,
                )
            )  # fmt: skip
    return lines


def _spread(cell):
    mean, sd = cell.split(" ± ")
    return Spread(mean=float(mean), sd=float(sd), data_sets=5)


def derived(text):
    """Return the tables that follow from the guarantees."""
    found = Reproduction(request=Request(), lines=shown_lines(text), outcomes={})
    return losses(found), improvements(found), gains(found)


@pytest.fixture(scope="module")
def text():
    return DOCUMENT.read_text(encoding="utf-8")


def test_every_guarantee_is_shown(text):
    assert len(shown_lines(text)) == 5 * len(METHODS) * 2


def test_losses_improvements_and_gains_follow_from_the_guarantees(text):
    shown = text.splitlines()
    for table in derived(text):
        for line in markdown_table(table.head, table.rows, words=2):
            assert line in shown
        for remark in table.remarks:
            assert f"- {remark}" in shown


def test_the_summary_quotes_the_gains(text):
    """What is said of consistent weights, in short, is what the table says."""
    remarks = [remark for remark in derived(text)[2].remarks if ", bayesian:" in remark]
    short = text[: text.index("## Two settings")]
    for column in ("published", "paper's rules"):
        [own] = [remark for remark in remarks if remark.startswith(column)]
        assert own.partition("guarantees by ")[2].rstrip(".") in short


def test_example_one_is_what_the_command_prints(text):
    table = example_table(example_one())
    for line in markdown_table(table.head, table.rows, words=2):
        assert line in text.splitlines()
