"""A posterior of the user's own goes the whole way: promise, folder, resuming, verifying."""

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest

from surefoot import DirichletPosterior, PosteriorDraws, load_run, run, verify_run
from surefoot.cli import main
from surefoot.pipeline import model, promises
from surefoot.pipeline.finished_runs import report_run
from surefoot.pipeline.manifest import read_manifest
from surefoot.pipeline.runs import earlier_counts
from surefoot.posterior.learned import LearnedPosterior
from surefoot.posterior.protocol import check_draws_wanted, stream_key
from surefoot.posterior.rows import OnRows, RowLayout


@dataclass(frozen=True, eq=False, repr=False)
class TwoModels(OnRows):
    """Either of two models, equally likely; what it was made from is forgotten."""

    layout: RowLayout
    models: np.ndarray
    counts: None = None
    independent_rows = False
    num_draws = None

    @property
    def identity(self):
        return self.models

    def mean(self):
        return self.models.mean(axis=0)

    def sample(self, n, rng):
        return next(self.stream(n, rng))

    def stream(self, n, rng, rows=None):
        picks = np.random.default_rng(stream_key(rng)).integers(0, 2, check_draws_wanted(n))
        entries = self.layout.entries_of(self.layout.check_rows(rows))
        return iter([self.models[picks][:, entries]])


def two_models(counts, seed=0):
    drawn = DirichletPosterior(counts).sample(2, np.random.default_rng(seed))
    return TwoModels(RowLayout.of(counts), drawn)


def two_others(counts):
    return two_models(counts, seed=1)


def jeffreys(counts):
    return DirichletPosterior(counts, prior=0.5)


def sampled(counts):
    draws = DirichletPosterior(counts).sample(1500, np.random.default_rng(0))
    mdp = counts.to_mdp(discount=0.9)
    return PosteriorDraws.from_arrays(draws, mdp=mdp, independent=True, counts=counts)


@pytest.fixture(scope="module")
def unknowing(settings, tmp_path_factory):
    """A run whose posterior knows no counts."""
    return run(settings, tmp_path_factory.mktemp("own") / "run", posterior=two_models)


def test_a_posterior_without_counts_says_so_and_what_was_not_measured(unknowing):
    certificate = unknowing.certificate
    assert "taking the model's successors as complete and its rewards as exact" in (
        certificate.sentence
    )
    assert certificate.prior == "TwoModels"
    assert certificate.curse is None
    assert certificate.backtest is None
    assert certificate.has("posterior_of_whole_logs")
    for finding in unknowing.model.placed.findings:  # what the log showed is not lost
        assert certificate.has(finding.code)
    page = (unknowing.folder / "report.html").read_text()
    assert "your own posterior: TwoModels" in page


def test_the_promise_is_that_of_the_posterior(unknowing):
    known = unknowing.model
    again = promises.certify_policy(known, unknowing.certificate.policy)
    assert unknowing.certificate.lower_bound == pytest.approx(again.lower_bound)
    np.testing.assert_array_equal(known.mdp.probability, known.posterior.mean())


def test_the_folder_names_it_and_is_not_read_without_it(unknowing, capsys):
    identity = read_manifest(unknowing.folder).identity["posterior"]
    assert identity["made_by"].endswith("two_models")
    assert identity["fingerprint"] == unknowing.certificate.data_fingerprint
    assert "from Python" in (unknowing.folder / "config.toml").read_text().splitlines()[0]
    for read in (load_run, verify_run, report_run):
        with pytest.raises(ValueError, match=r"two_models.*posterior=\.\.\."):
            read(unknowing.folder)
    folder = str(unknowing.folder)
    for command in (
        ["verify", folder],
        ["certify", folder, "--policy", folder],
        ["solve", "--config", f"{folder}/config.toml", "--out", f"{folder}-again"],
    ):
        assert main(command) == 1
        assert "passed from Python" in " ".join(capsys.readouterr().err.split())
    assert earlier_counts(unknowing.folder).num_states  # as data it can be added


def test_it_is_verified_with_it_and_falls_with_another(unknowing):
    rng = np.random.default_rng(0)
    assert verify_run(unknowing.folder, rng, posterior=two_models).stands
    loaded = load_run(unknowing.folder, posterior=two_models)
    assert loaded.certificate.promise == unknowing.certificate.promise
    verdict = verify_run(unknowing.folder, rng, posterior=two_others)
    assert not verdict.stands
    assert "other data" in verdict.message


def test_a_run_without_one_refuses_one(finished):
    with pytest.raises(ValueError, match="made without posterior="):
        load_run(finished.folder, posterior=jeffreys)


def test_one_that_can_be_divided_is_weighed_as_ours_are(settings, tmp_path):
    own = run(settings, tmp_path / "own", posterior=jeffreys)
    usual = run(replace(settings, prior=0.5), tmp_path / "usual")
    # What a larger state would promise is not asked of a posterior that may know no such states.
    told = {f.code: f.values for f in own.certificate.findings}
    ours = {f.code: f.values for f in usual.certificate.findings}
    assert told == {code: ours[code] for code in told}
    assert own.certificate.lower_bound == usual.certificate.lower_bound
    assert own.certificate.backtest is not None
    assert own.certificate.curse is not None


def test_finitely_many_draws_choose_or_certify(settings, tmp_path):
    made = run(replace(settings, draws=None), tmp_path / "run", posterior=sampled)
    split = next(f for f in made.certificate.findings if f.code == "draws_split")
    assert split.values == {"draws": 1500, "choosing": 750, "certifying": 750}
    assert made.certificate.draws == 750
    assert not made.certificate.has("draws_reused")
    assert verify_run(made.folder, posterior=sampled).stands


def test_a_run_that_was_stopped_goes_on_with_the_same_posterior_only(
    settings, tmp_path, monkeypatch
):
    out = tmp_path / "run"

    def stopped(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("surefoot.pipeline.runs._completed", stopped)
        with pytest.raises(KeyboardInterrupt):
            run(settings, out, posterior=two_models)
    seeds = iter([1])

    def changed(counts):
        return two_models(counts, seed=next(seeds))

    changed.__qualname__ = two_models.__qualname__  # the name is the same, the numbers are not
    made = run(settings, out, posterior=changed)
    log = (out / "log.txt").read_text()
    assert "The posterior has changed: the search for a policy starts again" in log
    fresh = run(settings, tmp_path / "fresh", posterior=two_others)
    assert made.certificate.lower_bound == fresh.certificate.lower_bound


def test_what_does_not_go_together_is_refused(settings, tmp_path):
    out = tmp_path / "run"
    with pytest.raises(ValueError, match="goes with basis='bayesian'"):
        run(replace(settings, basis="frequentist"), out, posterior=jeffreys)
    with pytest.raises(ValueError, match="belongs to the built-in posterior"):
        run(replace(settings, prior=1.0), out, posterior=jeffreys)
    with pytest.raises(ValueError, match="it lacks num_entries"):
        run(settings, out, posterior=object())
    counts = model.place(settings, model.read_log(settings), jeffreys)
    with pytest.raises(ValueError, match="a function from counts to a posterior"):
        run(replace(settings, honest=True), out, posterior=jeffreys(counts))
    with pytest.raises(ValueError, match="do not have the same rows"):
        run(replace(settings, support="observed"), out, posterior=jeffreys(counts))
    assert not out.exists()


def test_one_posterior_and_the_function_that_makes_it_promise_the_same(settings, tmp_path):
    counts = model.place(settings, model.read_log(settings), jeffreys)
    one = run(settings, tmp_path / "one", posterior=jeffreys(counts))
    made = run(settings, tmp_path / "made", posterior=jeffreys)
    assert one.certificate.promise == made.certificate.promise
    content = json.loads((one.folder / "manifest.json").read_text())
    assert content["identity"]["posterior"]["made_by"].endswith("DirichletPosterior")


def test_a_time_budget_does_not_forget_who_brought_it(settings, tmp_path):
    made = run(replace(settings, time_budget=60.0), tmp_path / "run", posterior=jeffreys)
    first = (made.folder / "config.toml").read_text("utf-8").splitlines()[0]
    assert "posterior=..." in first
    assert "jeffreys" in first


def test_honest_runs_fit_it_to_each_part(settings, tmp_path):
    parts = []

    def fitted(counts):
        parts.append(float(counts.count.sum()))
        return jeffreys(counts)

    made = run(replace(settings, honest=True), tmp_path / "run", posterior=fitted)
    assert made.certificate.split is not None
    certifying, choosing, whole = parts  # the whole log is looked at for the backtest
    assert certifying == made.model.counts.count.sum()
    assert certifying + choosing == whole


def test_the_posterior_of_a_log_is_learned_once(settings, tmp_path, monkeypatch):
    made = []
    learn = LearnedPosterior.__post_init__

    def counted(self):
        made.append(float(self.counts.count.sum()))
        learn(self)

    monkeypatch.setattr(LearnedPosterior, "__post_init__", counted)
    done = run(replace(settings, time_budget=60.0), tmp_path / "run")
    whole = done.model.counts.count.sum()
    # Halves of the log are weighed by posteriors of their own.
    assert made.count(whole) == 1
