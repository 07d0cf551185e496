"""A run folder: its files, that it appears whole, goes on where it was, and can be repeated."""

import csv
import errno
import json
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from surefoot import Finding
from surefoot.calibration.credible import credible_set
from surefoot.certificates.certificate import Certificate
from surefoot.certificates.evidence import Curse, Gain
from surefoot.certificates.verification import verify
from surefoot.data.counts import Counts
from surefoot.pipeline import added_log, model, promises, run_files, runs
from surefoot.pipeline.finished_runs import load_run, verify_run
from surefoot.pipeline.folder import FILES, unfinished_name
from surefoot.pipeline.manifest import EPISODES, PARTS, read_manifest
from surefoot.pipeline.model import build_model, read_log
from surefoot.pipeline.page_content import write_report
from surefoot.pipeline.runs import run
from surefoot.pipeline.settings import Settings
from surefoot.solvers.solver import evaluate

LEFT = sorted([*FILES, PARTS, EPISODES])
"""The files of a run folder."""


NEW_DRAWS = 1
"""Seed of the draws that verify these runs. A promise that holds fails one such check in a hundred:
with seed 0, 44 of 600 draws fall short of one that 4.7% of 40,000 draws do."""


def small(log, **options):
    return Settings(
        log=(str(log),), reward="cost", costs=True, discount=0.9, draws=600, eta=0.01, **options
    )


def copied(finished, folder):
    """Return a copy of a run folder, to be changed."""
    for name in LEFT:
        (folder / name).write_bytes((finished.folder / name).read_bytes())
    return folder


def reseal(folder):
    """Write new hashes for changed files, as somebody would who means to."""
    certificate = folder / "certificate.json"
    content = json.loads(certificate.read_text())
    content.pop("digest")
    content["digest"] = run_files.digest_of(content)
    certificate.write_text(json.dumps(content))
    names = [name for name in FILES if name != "manifest.json"]
    read_manifest(folder).with_files(folder, names).write(folder)


def test_the_folder_holds_exactly_the_promised_files(finished):
    assert sorted(path.name for path in finished.folder.iterdir()) == sorted(
        [*FILES, PARTS, EPISODES]
    )
    assert not unfinished_name(finished.folder).exists()


def test_the_certificate_has_the_promised_fields(finished):
    content = json.loads((finished.folder / "certificate.json").read_text())
    wanted = "lower_bound upper_bound robust_return nominal_return delta eta draws seed basis"
    assert set(wanted.split()) <= set(content)
    assert content["robust_return"] < content["lower_bound"] < content["upper_bound"]
    assert content["lower_bound"] < content["nominal_return"]
    assert Certificate.load(finished.folder / "certificate.json").sentence == content["sentence"]


def test_the_policy_files_agree_with_the_certificate(finished):
    stored = load_run(finished.folder)
    mdp, certificate = stored.model.mdp, stored.certificate
    with (finished.folder / "policy.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert list(lines[0]) == ["condition", "decision", "probability", "visits", "margin"]
    assert {line["condition"] for line in lines} == set(stored.model.counts.state_labels)
    asked = json.loads((finished.folder / "policy.json").read_text())["action"]
    for line in lines:
        state = mdp.state_labels.index(line["condition"])
        action = int(certificate.policy[state])
        assert line["decision"] == mdp.action_labels[action] == asked[line["condition"]]
        assert int(line["visits"]) == stored.model.placed.visits[mdp.row_of(state, action)]
        assert float(line["probability"]) == 1


def test_margins_are_one_step_differences(finished):
    stored = load_run(finished.folder)
    mdp, policy = stored.model.mdp, stored.certificate.policy
    dense = mdp.to_arrays()
    chosen = dense.transitions[np.arange(mdp.num_states), policy]
    gain = (dense.transitions * dense.rewards).sum(axis=2)
    value = np.linalg.solve(
        np.eye(mdp.num_states) - mdp.discount * chosen, gain[np.arange(mdp.num_states), policy]
    )
    quality = gain + mdp.discount * dense.transitions @ value
    with (finished.folder / "policy.csv").open(newline="") as file:
        for line in csv.DictReader(file):
            state = mdp.state_labels.index(line["condition"])
            ours, other = quality[state, policy[state]], quality[state, 1 - policy[state]]
            assert float(line["margin"]) == pytest.approx(ours - other, abs=1e-6)


def test_the_run_can_be_repeated_from_its_configuration(finished, tmp_path):
    again = run(Settings.from_toml(finished.folder / "config.toml"), tmp_path / "again")
    names = ("policy.csv", "certificate.json", "candidates.csv", "config.toml")
    for name in names:
        assert (again.folder / name).read_bytes() == (finished.folder / name).read_bytes()


def test_the_certificate_stands_and_a_better_one_falls(finished, tmp_path):
    assert verify_run(finished.folder, np.random.default_rng(1)).stands
    copy = copied(finished, tmp_path)
    content = json.loads((copy / "certificate.json").read_text())
    content["lower_bound"] = content["nominal_return"]
    (copy / "certificate.json").write_text(json.dumps(content))
    verdict = verify_run(copy)
    assert not verdict.stands
    assert "was changed after it was written" in verdict.message
    reseal(copy)
    verdict = verify_run(copy, np.random.default_rng(1))
    assert not verdict.stands
    assert "fall short" in verdict.message


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("config.toml", "discount = 0.95", "discount = 0.9", "other model"),
        ("config.toml", "delta = 0.05", "prior = 2.0\ndelta = 0.05", "other"),
        ("config.toml", "delta = 0.05", "delta = 0.01", "delta differ"),
        ("policy.csv", "wear 0,run", "wear 0,repair", "not the policy"),
        ("policy.json", '"wear 0": "run"', '"wear 0": "repair"', "not the policy"),
        ("policy.json", "{", "", "not the policy"),
    ],
)
def test_a_changed_run_does_not_stand(finished, tmp_path, name, old, new, said):
    copied(finished, tmp_path)
    text = (tmp_path / name).read_text()
    assert old in text
    (tmp_path / name).write_text(text.replace(old, new))
    verdict = verify_run(tmp_path)
    assert not verdict.stands
    assert f"{name} was changed after it was written" in verdict.message
    reseal(tmp_path)
    verdict = verify_run(tmp_path)
    assert not verdict.stands
    assert said in verdict.message


@pytest.mark.parametrize(
    ("name", "value"),
    [("upper_bound", 0.0), ("robust_return", 0.0), ("sentence", "It earns a lot."), ("eta", 1e-9)],
)
def test_numbers_beside_the_promise_cannot_be_changed_either(finished, tmp_path, name, value):
    copied(finished, tmp_path)
    content = json.loads((tmp_path / "certificate.json").read_text())
    content[name] = value
    (tmp_path / "certificate.json").write_text(json.dumps(content))
    verdict = verify_run(tmp_path)
    assert not verdict.stands


def test_two_policies_are_compared(finished):
    found = promises.difference(
        finished.model, finished.certificate.policy, finished.model.behaviour
    )
    assert found.difference_lower_bound < found.mean_difference
    assert found.sentence.startswith("With 95% confidence")
    assert "taking what follows no pattern of the log at its worst" in found.sentence
    luck = Curse(mean=1.5, spread=0.25)
    unlucky = promises.difference(
        finished.model, finished.certificate.policy, finished.model.behaviour, luck
    )
    assert unlucky.difference_lower_bound == pytest.approx(found.difference_lower_bound - 1.75)
    log = promises.dealt_log(finished.model)
    halves = promises.difference(
        finished.model, finished.certificate.policy, finished.model.behaviour, log=log
    )
    assert halves.difference_lower_bound < found.difference_lower_bound


@pytest.mark.parametrize("basis", ["bayesian", "frequentist"])
def test_the_unit_is_said_with_every_number(small_log, tmp_path, basis):
    made = run(small(small_log, basis=basis, unit="EUR"), tmp_path / "run")
    policy = made.certificate.policy
    assert load_run(made.folder).certificate.unit == "EUR"
    assert made.certificate.sentence.count(" EUR") == 2
    assert promises.certify_policy(made.model, policy).unit == "EUR"
    assert " EUR" in promises.difference(made.model, policy, made.model.behaviour).sentence


def test_a_gain_over_the_log_is_said_where_one_is_certified(finished, tmp_path):
    made = finished.certificate.gain
    assert made.lower_bound == made.promise - finished.behaviour.log.upper
    assert made.promise < finished.certificate.nominal_return
    assert "more than what was done in the log" in finished.comparison
    gain = Gain(
        lower_bound=1.23456, promise=None, behaviour=None, delta_policy=0.04, delta_behaviour=0.01
    )
    certificate = replace(finished.certificate, gain=gain, unit="EUR")
    assert "at least 1.234 EUR more than what was done in the log" in certificate.gain_sentence
    assert certificate.sentence.endswith(" EUR.")
    (tmp_path / "config.toml").write_text("")
    write_report(finished.model, tmp_path, certificate, finished.candidates)
    page = (tmp_path / "report.html").read_text()
    assert "the rule earns at least 1.234 EUR more" in page
    turned = certificate.mirrored()
    assert "at least 1.234 EUR less than what was done in the log" in turned.gain_sentence


def test_findings_are_in_the_certificate_and_in_the_log(finished):
    content = json.loads((finished.folder / "certificate.json").read_text())
    assert content["format"] == 2
    new = {"split", "curse", "behaviour", "gain", "backtest", "doubt", "horizon", "unit", "stream"}
    assert new <= set(content)
    kept = [Finding.from_mapping(one) for one in content["findings"]]
    assert tuple(kept) == finished.certificate.findings
    assert [one["text"] for one in content["findings"]] == [one.text for one in kept]
    log = (finished.folder / "log.txt").read_text()
    assert all(f"{one.level}: {one.text}" in log for one in kept)


def test_a_failure_goes_on_where_it_was(settings, tmp_path, monkeypatch):
    out = tmp_path / "run"
    notes: list[str] = []

    class Teller(runs.Nobody):
        def note(self, text):
            notes.append(text)

    def full(*_arguments, **_options):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(runs, "write_report", full)
        with pytest.raises(OSError, match="Free some and run the same command again"):
            run(settings, out)
    assert not out.exists()
    assert unfinished_name(out).is_dir()
    with monkeypatch.context() as patch:
        patch.setattr(added_log, "read_log", full)
        patch.setattr(promises, "find", full)
        made = run(settings, out, teller=Teller())
    assert sorted(path.name for path in out.iterdir()) == LEFT
    assert "same settings" in notes[0]
    (line,) = (text for text in notes if text.startswith("Time: "))
    assert "done by an earlier run: Reading the log, Finding and certifying a policy" in line
    assert made.certificate.robust_return is not None
    assert verify_run(out, np.random.default_rng(0)).stands


def test_other_settings_start_anew(small_log, tmp_path, monkeypatch):
    out, notes = tmp_path / "run", []

    class Teller(runs.Nobody):
        def note(self, text):
            notes.append(text)

    def fail(*_arguments, **_options):
        raise ValueError("stop")

    with monkeypatch.context() as patch:
        patch.setattr(runs, "write_report", fail)
        with pytest.raises(ValueError, match="stop"):
            run(small(small_log), out)
    made = run(small(small_log, seed=1), out, teller=Teller())
    assert "with another seed: starting again" in notes[0]
    assert made.settings.seed == 1


def test_a_log_that_cannot_be_read_leaves_nothing(tmp_path):
    with pytest.raises(OSError, match="no such file"):
        run(Settings(log=(str(tmp_path / "no.csv"),), discount=0.9), tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_a_log_of_one_row_makes_a_run_that_warns(tmp_path):
    """No half of it can be held out; it shows next to nothing, and the run says so."""
    log = tmp_path / "log.csv"
    log.write_text("state,action,reward,next_state\ngood,operate,12,fair\n")
    made = run(Settings(log=str(log), discount=0.9, draws=300, eta=0.02), tmp_path / "run")
    assert any("only 1 transition" in text for text in made.certificate.warnings)
    assert not made.certificate.has("backtest_passed")


def test_a_split_of_a_few_rows_warns_too(tmp_path):
    log = tmp_path / "log.csv"
    rows = [f"{'ab'[k % 2]},go,{k % 3},{'ba'[k % 2]}" for k in range(24)]
    log.write_text("state,action,reward,next_state\n" + "\n".join(rows) + "\n")
    settings = Settings(log=str(log), discount=0.9, draws=300, eta=0.02, honest=True)
    assert run(settings, tmp_path / "run").certificate.has("few_transitions")


def test_a_killed_run_leaves_no_folder(settings, tmp_path):
    config = tmp_path / "config.toml"
    config.write_text(settings.in_full().to_toml())
    code = (
        "import time, surefoot.pipeline.runs as r\n"
        "r.write_report = lambda *a, **k: (print('now', flush=True), time.sleep(60))\n"
        "from surefoot.pipeline.settings import Settings\n"
        f"r.run(Settings.from_toml({str(config)!r}), {str(tmp_path / 'run')!r})\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout.readline() == b"now\n"
        with pytest.raises(OSError, match="another run is writing"):
            run(settings, tmp_path / "run")
        process.send_signal(signal.SIGKILL)
    assert not (tmp_path / "run").exists()
    time.sleep(0.1)
    run(settings, tmp_path / "run")
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == sorted(
        [*FILES, PARTS, EPISODES]
    )


def test_costs_are_promised_from_above(small_log, tmp_path):
    made = run(small(small_log), tmp_path / "run")
    certificate = made.certificate
    assert certificate.objective == "min"
    assert "cost" in certificate.sentence
    assert "at most" in certificate.sentence
    assert "highest cost seen" in certificate.sentence
    assert certificate.nominal_return < certificate.upper_bound < certificate.robust_return
    assert certificate.lower_bound < certificate.upper_bound
    assert certificate.findings[0].values["objective"] == "min"
    assert verify_run(made.folder, np.random.default_rng(NEW_DRAWS)).stands
    # The same promise as about negative rewards.
    settings = replace(made.settings, costs=False)
    rewards = build_model(settings, model.negated(read_log(made.settings)))
    twin = certificate.mirrored()
    again = verify(twin, rewards.posterior, rewards.mdp, rng=np.random.default_rng(NEW_DRAWS))
    assert again.stands
    page = (made.folder / "report.html").read_text()
    assert "costs at most" in page


@pytest.mark.parametrize("basis", ["bayesian", "frequentist"])
def test_costs_are_mirrored_rewards_bit_for_bit(small_log, tmp_path, basis):
    with small_log.open() as file:
        rows = list(csv.DictReader(file))
    turned = tmp_path / "rewards.csv"
    lines = [f"{r['state']},{r['action']},{-int(r['cost'])},{r['next_state']}" for r in rows]
    turned.write_text("state,action,gain,next_state\n" + "\n".join(lines) + "\n")
    costs = run(small(small_log, basis=basis), tmp_path / "costs")
    settings = replace(small(turned, basis=basis), reward="gain", costs=False)
    gains = run(settings, tmp_path / "gains")
    one, other = (
        json.loads(c.to_json()) for c in (costs.certificate, gains.certificate.mirrored())
    )
    assert one == other
    assert one["objective"] == "min"
    pairs = zip(costs.candidates, gains.candidates, strict=True)
    assert all(repr(a) == repr(b.mirrored()) for a, b in pairs)
    assert [line.margin for line in costs.policy] == [line.margin for line in gains.policy]


STATES = ("up", "down")


@pytest.mark.parametrize("options", [{}, {"norm": "linf"}, {"weights": "analytic"}])
def test_frequentist_runs(small_log, tmp_path, options):
    if options:  # only boxes bound what was never seen
        listed = [f"{s},{a},{t}" for s in STATES for a in ("wait", "mend") for t in STATES]
        (tmp_path / "all.csv").write_text("\n".join(["state,action,next_state", *listed]) + "\n")
        options = {**options, "support": str(tmp_path / "all.csv")}
    made = run(small(small_log, basis="frequentist", **options), tmp_path / "run")
    certificate = made.certificate
    assert certificate.basis == "frequentist"
    assert certificate.robust_return == certificate.upper_bound
    found = promises.difference(made.model, certificate.policy, made.model.behaviour)
    assert found.probability_a_better is None
    assert "costs at" in found.sentence
    assert verify_run(made.folder).stands


def test_a_frequentist_promise_that_is_too_good_falls(small_log, tmp_path):
    made = run(small(small_log, basis="frequentist"), tmp_path / "run")
    stored = load_run(made.folder)
    better = replace(stored.certificate, upper_bound=stored.certificate.upper_bound - 0.01)
    verdict = promises.check_again(stored.model, better)
    assert not verdict.stands
    assert "worst case" in verdict.message


@pytest.mark.parametrize("basis", ["bayesian", "frequentist"])
def test_only_allowed_pairs_are_used(small_log, tmp_path, basis):
    allowed = tmp_path / "allowed.csv"
    allowed.write_text("state,action\nup,mend\ndown,wait\n")
    made = run(small(small_log, basis=basis, allowed=str(allowed)), tmp_path / "run")
    content = json.loads((made.folder / "policy.json").read_text())
    assert content["action"] == {"up": "mend", "down": "wait"}


def test_a_log_is_added_to_an_earlier_run(small_log, tmp_path):
    first = run(small(small_log), tmp_path / "one")
    settings = replace(first.settings, add=str(first.folder))
    second = run(settings, tmp_path / "two")
    before, after = (Counts.load(made.folder / "counts.npz") for made in (first, second))
    assert after.count.tolist() == (2 * before.count).tolist()
    assert not any("count twice" in text for text in first.warnings)
    assert any("costs.csv was read before: its rows count twice" in t for t in second.warnings)
    third = run(replace(settings, add=str(second.folder)), tmp_path / "again")
    assert any("count twice" in text for text in third.warnings)
    with pytest.raises(OSError, match="not a run folder"):
        run(replace(settings, add=str(tmp_path)), tmp_path / "three")


def test_the_first_state_can_be_given(small_log, tmp_path):
    initial = tmp_path / "first.csv"
    initial.write_text("state,probability\ndown,1\n")
    settings = small(small_log, initial=str(initial))
    made = build_model(settings, read_log(settings))
    assert made.mdp.initial.tolist() == [1.0, 0.0, 0.0]
    initial.write_text("state,probability\ndown,0.5\n")
    with pytest.raises(ValueError, match=r"sum to 0\.5"):
        build_model(settings, read_log(settings))
    initial.write_text("state,probability\ndwn,1\n")
    with pytest.raises(ValueError, match="Did you mean 'down'"):
        build_model(settings, read_log(settings))


def test_a_time_budget_stops_the_search_with_a_valid_promise(small_log, tmp_path):
    made = run(small(small_log, time_budget=0.0), tmp_path / "run")
    assert made.stopped_early
    found = Finding.of("stopped_early")
    assert found in made.certificate.findings
    assert found.text in (made.folder / "report.html").read_text().replace("&#39;", "'")
    assert load_run(made.folder).stopped_early
    assert verify_run(made.folder, np.random.default_rng(NEW_DRAWS)).stands


def test_the_robust_return_is_tighter_than_with_delta_shared_over_states(finished):
    """One region for the policy's own rows: not looser than a set for every row of the model."""
    stored = load_run(finished.folder)
    whole = credible_set(
        stored.model.posterior, stored.model.mdp, delta=0.05, eta=0.01, union="states",
        rng=np.random.default_rng(5),
    )  # fmt: skip
    worst = evaluate(stored.model.mdp, stored.certificate.policy, whole).return_lower
    assert worst <= stored.certificate.robust_return < stored.certificate.lower_bound


def test_a_run_shows_itself(finished):
    assert repr(finished).startswith("Run(")
    assert len(repr(finished)) < 300
    summary = finished.summary()
    assert finished.certificate.sentence in summary
    assert "report.html" in summary
    assert "wear 0" in finished._repr_html_()
    assert repr(finished.settings).count("=") < 12  # what was given, not every default
    assert "discount" in finished.settings._repr_html_()


def test_settings_take_one_name_or_several(tmp_path):
    one = Settings(log=tmp_path / "a.csv", state="x", discount=0.9)
    assert one == Settings(log=(str(tmp_path / "a.csv"),), state=("x",), discount=0.9)
    assert Settings(log=[tmp_path, "b.csv"]).log == (str(tmp_path), "b.csv")


def test_too_few_draws_are_refused_before_the_log_is_read(tmp_path):
    settings = Settings(log=tmp_path / "no.csv", discount=0.9, draws=10)
    with pytest.raises(ValueError, match="needs at least 135"):
        run(settings, tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def noisy_log(tmp_path, noise):
    """Two states, one action; rewards of 1 plus or minus the noise."""
    lines = ["state,action,reward,next_state"]
    lines += [f"{k % 2},go,{1 + noise * (-1) ** (k // 2)},{(k + k // 7) % 2}" for k in range(60)]
    path = tmp_path / "noisy.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_the_worst_case_counts_uncertain_rewards(tmp_path):
    """Below the certificate of the same run, and the lower the noisier the rewards are."""
    worst = []
    for noise in (1, 5, 10):
        settings = Settings(
            log=(str(noisy_log(tmp_path, noise)),), discount=0.9, draws=500, support="observed"
        )
        certificate = run(settings, tmp_path / f"run{noise}").certificate
        assert certificate.robust_return <= certificate.lower_bound
        worst.append(certificate.robust_return)
    assert worst[0] > worst[1] > worst[2]


def test_frequentist_runs_count_uncertain_rewards(tmp_path):
    settings = Settings(log=(str(noisy_log(tmp_path, 5)),), discount=0.9, basis="frequentist")
    made = run(settings, tmp_path / "run")
    exact = run(replace(settings, rewards="fixed"), tmp_path / "exact")
    assert made.certificate.lower_bound < exact.certificate.lower_bound
    assert verify_run(tmp_path / "run").stands
