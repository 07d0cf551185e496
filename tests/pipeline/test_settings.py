"""Settings: TOML and back, wrong names and values."""

from dataclasses import replace
from pathlib import Path

import pytest

from surefoot.commands.options import SECTIONS, settings_table
from surefoot.data.counts import Counts
from surefoot.pipeline.model import build_model
from surefoot.pipeline.setting import declared
from surefoot.pipeline.settings import Settings
from surefoot.pipeline.side_files import read_initial

FULL = Settings(
    log=("a b.csv", 'c"d\\e\n.csv'),
    discount=0.95,
    delta=0.1,
    state=("x", "y"),
    reward_range=(0.0, 1.5),
    costs=True,
    support="all",
    min_visits=3,
    draws=100,
    time_budget=1.5,
)


def test_toml_and_back(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text(FULL.to_toml(), encoding="utf-8")
    assert Settings.from_toml(path) == FULL


def test_every_setting_is_an_option_of_the_command_line():
    sections = {name: one.section for name, (one, _) in declared(Settings).items()}
    assert [name for name, section in sections.items() if section not in SECTIONS] == ["log"]


def test_every_word_and_default_fulfils_its_own_rule():
    for name, (one, field) in declared(Settings).items():
        assert one.text.endswith("."), name
        assert bool(one.rule) == (one.holds is not None), name
        assert one.holds is None or field.default is None or one.holds(field.default), name
        assert not one.words or all(word in one.text for word in one.words), name


def test_the_documents_list_all_settings():
    """To renew: print(surefoot.commands.options.settings_table())."""
    page = Path(__file__).parents[2] / "docs" / "command-line.md"
    assert settings_table() in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("discuont = 0.9", "no setting 'discuont'. Did you mean 'discount'"),
        ('discount = "0.9"', "discount = '0.9'; it must be a number"),
        ("draws = 1.5", "draws = 1.5; it must be a whole number"),
        ("discount = 1.0", "discount=1.0; it must be at least 0 and below 1"),
        ("delta = nan", "delta=nan; it must be above 0"),
        ("delta = 0.7", "at most 0.5"),
        ("prior = 0", "prior=0.0; it must be a finite number above 0"),
        ('norm = "l2"', "norm='l2'; choose one of l1, linf"),
        ('kind = "clopper-pearson"', "Did you mean 'clopper_pearson'"),
        ("reward_range = [1]", "two numbers"),
        ("min-visits = -1", "min_visits=-1; it must be 0 or more"),
        ("x = ", "not a TOML file"),
        ('support = ""', "support=''; it must not be empty"),
        ("draws = 1000000000000", "draws=1000000000000; it must be from 1 to 100000000"),
        (f"x = {'[' * 100_000}", "nested too deeply"),
    ],
)
def test_wrong_configurations_are_refused(tmp_path, text, message):
    path = tmp_path / "c.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=r".") as problem:
        Settings.from_toml(path)
    assert message in str(problem.value)


def test_the_discount_must_be_given():
    with pytest.raises(ValueError, match="no discount"):
        _ = replace(FULL, discount=None).discounted


def test_labels_that_cannot_be_printed_come_back(tmp_path):
    odd = Settings(discount=0.9, state=("tab\t", "tag\U000e0001", "emoji\U0001f600"))
    (tmp_path / "c.toml").write_text(odd.to_toml(), encoding="utf-8")
    assert Settings.from_toml(tmp_path / "c.toml").state == odd.state


def test_a_negative_first_state_is_named(tmp_path):
    path = tmp_path / "initial.csv"
    path.write_text("state,probability\n0,-0.5\n1,1.5\n")
    placed = Counts.from_arrays([[[1, 1]], [[1, 1]]])
    with pytest.raises(ValueError, match=r"the probability of state 0 is -0\.5; probabilities"):
        read_initial(Settings(initial=str(path)), placed)


def test_levels_that_no_machine_can_reach_are_refused_at_once():
    with pytest.raises(ValueError, match=r"delta=1e-300 needs about 6.9e\+300 draws"):
        replace(FULL, delta=1e-300, draws=None).check_complete()
    replace(FULL, draws=None).check_complete()


def test_honest_goes_with_a_prior():
    replace(FULL, honest=True, draws=None).check_complete()
    with pytest.raises(ValueError, match="honest=True goes with basis='bayesian'"):
        replace(FULL, honest=True, basis="frequentist").check_complete()


@pytest.mark.parametrize("support", ["observed", "action"])
def test_a_frequentist_promise_on_a_support_read_off_the_log_is_refused(support):
    counts = Counts.from_arrays([[[3, 1]], [[0, 2]]], rewards=[[0.0], [1.0]])
    settings = Settings(discount=0.9, basis="frequentist", support=support)
    with pytest.raises(ValueError, match="read off the log, and no frequentist bound holds"):
        build_model(settings, counts)
