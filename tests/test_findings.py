"""Findings: every code has words, words have one home, and costs are said in words of their own."""

import ast
import inspect
import json
import re
from pathlib import Path

import pytest

from surefoot import Finding
from surefoot._finding_codes import TEXTS
from surefoot._finding_texts import parts
from surefoot._findings import LEVELS, stated, texts_of
from surefoot.certificates.behaviour import CUT_OFF, FEW_EPISODES, NO_EPISODES, NO_LIMIT

SOURCE = Path(__file__).parents[1] / "src" / "surefoot"
TEXT_FILES = ("_finding_texts.py", "_log_texts.py", "_doubt_texts.py")
HOMES = {*TEXT_FILES, "sentences.py", "headlines.py"}
"""The only modules that have the words of findings and of promises."""

VALUES = {
    "action": "'repair'",
    "across": 4,
    "amount": -5.0,
    "as_seen": -4.5,
    "bearable": 0.5,
    "candidates": 8,
    "certifying": 300,
    "choosing": 200,
    "checked": 4,
    "choosing_without": -8.25,
    "column": "done",
    "data": "march.csv",
    "declared": True,
    "device": "NVIDIA H200",
    "draws": 500,
    "tries": 3,
    "encoding": "cp1252",
    "evidence": 0.3,
    "episodes": 40,
    "error": 0.01,
    "example": "A7",
    "expected": 2.5,
    "explained": 0.625,
    "file": "log.csv",
    "files": 2,
    "first_state": 0.25,
    "first_state_without": -8.5,
    "high": -3.5,
    "less": 1.25,
    "linear": 0.75,
    "labels": 80,
    "limit": "500MB",
    "log": -7.5,
    "low": -9.5,
    "mark": "comma",
    "mean": 1.5,
    "model": -6.25,
    "monte_carlo": 0.125,
    "monte_carlo_without": -8.625,
    "odd": 1,
    "p_value": 0.0004,
    "pairs": 1200,
    "promise": -8.75,
    "reach": 1.75,
    "rewards": 0.5,
    "rewards_without": -8.25,
    "rows": 3,
    "seen": 11,
    "seen_high": -4.0,
    "seen_low": -8.0,
    "share": "99%",
    "short": 0.75,
    "spread": 0.25,
    "starts": 40,
    "state": "'worn'",
    "states": 2,
    "transitions_without": -6.5,
    "steps": 30,
    "text": "Something was said.",
    "transitions": 50,
    "tried": 12,
    "unknown": 7,
    "unseen": 1.5,
    "unseen_without": -7.0,
    "unlike": "discount",
    "usual": "7 days",
    "wanted": 900,
    "what": "reward",
    "whole": 20,
    "written": "%d.%m.%Y",
}
UNCHECKED = ("few", "aggregated", "unordered", "changed", "memory", "unreadable")
REASONS = {
    "fewer_draws": ("memory", "posterior"),
    "memory_not_checked": UNCHECKED,
    "drift_not_checked": UNCHECKED,
    "gain_not_certified": (NO_EPISODES, FEW_EPISODES, CUT_OFF, NO_LIMIT),
}


def examples(code):
    """Yield the finding with the values it needs, and with all that it can have."""
    parameters = inspect.signature(TEXTS[code].words).parameters
    needed = {
        name: VALUES[name]
        for name, parameter in parameters.items()
        if parameter.default is parameter.empty and name != "reason"
    }
    extra = {name: VALUES[name] for name in parameters if name in VALUES}
    for reason in REASONS.get(code, (None,)):
        why = {} if reason is None else {"reason": reason}
        yield Finding.of(code, **needed, **why)
        yield Finding.of(code, **extra, **why)


@pytest.mark.parametrize("code", TEXTS)
def test_every_code_has_words_and_survives_json(code):
    for found in examples(code):
        assert found.level in LEVELS
        assert len(found.text) > 10
        assert "None" not in found.text
        assert found.text.endswith(".") == (found.level != "assumption")
        kept = json.loads(json.dumps(found.to_mapping()))
        assert set(kept) == {"code", "level", "values", "text"}
        again = Finding.from_mapping(kept)
        assert again == found
        assert hash(again) == hash(found)
        assert again.text == found.text


@pytest.mark.parametrize("reason", REASONS["gain_not_certified"])
def test_why_a_gain_is_not_certified_is_a_sentence_of_its_own(reason):
    assert not Finding.of("gain_not_certified", reason=reason).text.endswith(f": {reason}.")


@pytest.mark.parametrize("code", TEXTS)
def test_costs_have_words_of_their_own(code):
    for found in examples(code):
        turned = found.mirrored()
        assert turned.mirrored() == found
        if "objective" in inspect.signature(TEXTS[code].words).parameters:
            assert "cost" in turned.text
            assert "reward" not in turned.text
            assert re.search(r"-\d", turned.text) is None
        else:
            assert turned == found


@pytest.mark.parametrize("code", [code for code, text in TEXTS.items() if text.lead])
def test_assumptions_begin_as_the_sentence_needs_them(code):
    lead, clause = parts(code, {})
    assert lead in ("assuming", "assuming that", "taking")
    assert Finding.of(code).text == f"{lead} {clause}"
    assert Finding.of(code).level == "assumption"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Finding.of("unheard_of"), "no finding with the code 'unheard_of'"),
        (lambda: Finding(code="observed_only", level="loud"), "choose one of assumption"),
        (lambda: Finding.of("rows_left_out", rows=3), "missing a required argument: 'what'"),
        (lambda: Finding.of("observed_only", rows=3), "unexpected keyword argument"),
        (lambda: Finding.of("rows_left_out", rows=[3], what="x"), "a number or a text"),
        (lambda: Finding.from_mapping({"code": "observed_only"}), "a code, a level and values"),
    ],
)
def test_wrong_findings_are_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_what_a_newer_version_found_keeps_its_words():
    kept = {"code": "of_tomorrow", "level": "note", "values": {"x": 1}, "text": "All new."}
    assert Finding.from_mapping(kept) == stated("All new.", "note")


def test_texts_are_told_once_and_by_level():
    found = [Finding.of("observed_only"), Finding.of("stopped_early"), Finding.of("observed_only")]
    assert texts_of(found, "warning") == (found[0].text,)
    assert len(texts_of(found, *LEVELS)) == 2


def strings(path):
    """Yield the texts of a module that are no docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documentation = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and text.strip() and id(node) not in documentation:
            yield " ".join(text.split())


PHRASES = {
    text for name in TEXT_FILES for text in strings(SOURCE / name) if len(text) > 24 and " " in text
}
"""Pieces of the sentences, long enough that nobody writes them twice by chance."""


@pytest.mark.parametrize(
    "path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE))
)
def test_sentences_have_one_home(path):
    if path.name in HOMES:
        return
    said = list(strings(path))
    if path.name != "certificate.py":  # it knows one sentence of format 1
        assert not [text for text in said for phrase in PHRASES if phrase in text]
    pattern = r"(?i)with (probability|confidence) at least|% confidence|confidence, "
    assert not [text for text in said if re.search(pattern, text)]


def test_returns_of_cut_episodes_are_not_said_to_be_those_of_whole_ones():
    values = {"model": 80.0, "episodes": 9, "share": "99%"}
    cut = Finding.of("practice_seen", log=50.0, low=60.0, high=90.0, **values).text
    assert cut.startswith("The episodes of the log, as far as it shows them, earned 50")
    assert "whole ones earned 60 to 90" in cut
    whole = Finding.of("practice_seen", log=70.0, low=60.0, high=90.0, **values).text
    assert whole.startswith("What was done in the log earned 70 per episode")


def test_amounts_of_daily_life_have_no_exponent():
    values = {"model": 14771.0, "episodes": 60, "share": "99%", "objective": "min"}
    told = Finding.of("practice_seen", log=8216.0, low=6207.0, high=59400.0, **values).text
    assert "6207 to 59400" in told
    assert "it would be 14770." in told
