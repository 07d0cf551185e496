"""Posteriors given as draws: every way in, thinning, refusals."""

from pathlib import Path

import arviz as az
import numpy as np
import pytest
import xarray as xr

from surefoot.domains import machine_replacement, riverswim
from surefoot.posterior.dirichlet import DirichletPosterior
from surefoot.posterior.draws import PosteriorDraws

STAN = Path(__file__).parent / "stan"


@pytest.fixture(scope="module")
def dense():
    """Four chains of 100 dense models with three states; one successor never happens."""
    rng = np.random.default_rng(0)
    draws = rng.dirichlet([2.0, 3.0, 1.0], size=(4, 100, 3, 2))
    draws[:, :, 0, 0] = np.pad(rng.dirichlet([2.0, 3.0], size=(4, 100)), ((0, 0), (0, 0), (0, 1)))
    draws[:, :, 2, 1] = 0.0
    return draws


def test_support_comes_from_the_non_zero_entries(dense):
    posterior = PosteriorDraws.from_arrays(dense)
    assert posterior.support[0, 0].tolist() == [True, True, False]
    assert not posterior.support[2, 1].any()
    assert posterior.num_entries == 2 + 4 * 3
    np.testing.assert_allclose(posterior.mean(), dense.mean(axis=(0, 1))[posterior.support])


def test_entries_in_the_order_of_a_model():
    domain = riverswim()
    exact = DirichletPosterior(domain.simulate(10, np.random.default_rng(0)))
    draws = exact.sample(200, np.random.default_rng(1))
    posterior = PosteriorDraws.from_arrays(draws, mdp=domain.mdp, independent=True)
    assert posterior.matches(domain.mdp)
    np.testing.assert_allclose(posterior.chains[0], draws, rtol=1e-14)
    assert posterior.num_draws == 200


def dataset(dense):
    diverging = np.zeros(dense.shape[:2], dtype=bool)
    diverging[0, :3] = True
    dims = ("chain", "draw", "s", "a", "t")
    return (
        xr.Dataset({"P": (dims, dense), "other": (("chain", "draw"), dense[:, :, 0, 0, 0])}),
        xr.Dataset({"diverging": (("chain", "draw"), diverging)}),
    )


def sources(dense):
    posterior, stats = dataset(dense)
    yield "DataTree", xr.DataTree.from_dict({"/posterior": posterior, "/sample_stats": stats})
    if hasattr(az, "InferenceData"):
        yield "InferenceData", az.InferenceData(posterior=posterior, sample_stats=stats)
    yield "Dataset", posterior
    yield "transposed", posterior.transpose("s", "a", "t", "draw", "chain")
    yield "mapping", {"P": dense, "other": dense[:, :, 0]}
    yield "NumPyro", FakeNumpyro(dense)
    yield "PyMC", FakeTrace(dense)


class FakeNumpyro:
    """What we use of numpyro.infer.MCMC; the real one is used in test_hierarchical.py."""

    def __init__(self, dense):
        self.dense = dense

    def get_samples(self, group_by_chain=False):
        assert group_by_chain
        return {"P": self.dense}

    def get_extra_fields(self, group_by_chain=False):
        return {"diverging": np.array([True, False, True, True])}


class FakeTrace:
    """What we use of PyMC's MultiTrace."""

    chains = (0, 1, 2, 3)
    varnames = ("P", "other")

    def __init__(self, dense):
        self.dense = dense

    def get_values(self, name, combine=True, squeeze=True):
        assert name == "P"
        assert not combine
        return list(self.dense)


@pytest.mark.parametrize("index", range(7))
def test_samplers_of_others(dense, index):
    listed = list(sources(dense))
    if index >= len(listed):  # one generation of ArviZ has no InferenceData
        index = 0
    name, source = listed[index]
    posterior = PosteriorDraws.from_inference(source, variable="P")
    np.testing.assert_allclose(posterior.mean(), dense.mean(axis=(0, 1))[posterior.support])
    assert posterior.chains.shape[:2] == (4, 100)
    known = {"DataTree": 3, "InferenceData": 3, "NumPyro": 3}
    assert posterior.diagnostics.divergences == known.get(name)


def test_arviz_from_dict(dense):
    if not hasattr(az, "InferenceData"):
        source = az.from_dict({"posterior": {"P": dense}})
    else:
        source = az.from_dict(posterior={"P": dense})
    assert PosteriorDraws.from_inference(source, variable="P").chains.shape[:2] == (4, 100)


def test_unknown_variable_lists_the_known(dense):
    for _, source in sources(dense):
        with pytest.raises(ValueError, match=r"no variable 'Q'.*P"):
            PosteriorDraws.from_inference(source, variable="Q")
    with pytest.raises(ValueError, match="cannot read draws from int"):
        PosteriorDraws.from_inference(3, variable="P")
    with pytest.raises(ValueError, match=r"\(S, A, S\)"):
        PosteriorDraws.from_inference({"P": dense[:, :, 0]}, variable="P")


def test_stan_files():
    files = [STAN / "chain_1.csv", STAN / "chain_2.csv"]
    posterior = PosteriorDraws.from_stan_csv(files, variable="P")
    assert posterior.chains.shape == (2, 150, 8)
    assert posterior.diagnostics.divergences == 1
    shapes = np.array([[[5.0, 2.0], [1.0, 4.0]], [[3.0, 3.0], [9.0, 1.0]]])
    mean = shapes / shapes.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(posterior.mean(), mean.ravel(), atol=0.05)
    # Column by column against the text of the first draw.
    lines = [line for line in files[0].read_text().splitlines() if line and line[0] != "#"]
    first = dict(zip(lines[0].split(","), map(float, lines[1].split(",")), strict=True))
    assert posterior.chains[0, 0, 0] == pytest.approx(first["P.1.1.1"], rel=1e-5)
    assert posterior.chains[0, 0, 2] == pytest.approx(first["P.1.2.1"], rel=1e-5)
    assert posterior.chains[0, 0, 5] == pytest.approx(first["P.2.1.2"], rel=1e-5)


def test_stan_warmup_is_left_out():
    posterior = PosteriorDraws.from_stan_csv(STAN / "with_warmup.csv", variable="P")
    assert posterior.chains.shape == (1, 20, 8)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[: text.rfind("\n#  Elapsed") - 30], "fields, the header has"),
        (lambda text: text.replace("\n-2", "\nx-2", 1), "line 30: could not convert"),
        (lambda _: "# only comments\n", "no draws"),
        (lambda _: "", "no draws"),
        (lambda text: text.replace("P.2.2.2", "P.2.2.3"), "8 columns"),
    ],
)
def test_broken_stan_files(tmp_path, change, message):
    path = tmp_path / "chain.csv"
    path.write_text(change((STAN / "chain_1.csv").read_text()))
    with pytest.raises(ValueError, match=message):
        PosteriorDraws.from_stan_csv(path, variable="P")


def test_unknown_stan_variable_and_uneven_chains():
    with pytest.raises(ValueError, match="no variable 'Q'; there are: P"):
        PosteriorDraws.from_stan_csv(STAN / "chain_1.csv", variable="Q")
    with pytest.raises(ValueError, match="differ in length"):
        PosteriorDraws.from_stan_csv([STAN / "chain_1.csv", STAN / "with_warmup.csv"], variable="P")
    with pytest.raises(ValueError, match="files is empty"):
        PosteriorDraws.from_stan_csv([], variable="P")


def sticky(repeats, n=300, chains=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.dirichlet([2.0, 3.0], size=(chains, n, 2, 1)).repeat(repeats, axis=1)


def test_correlated_draws_are_thinned():
    posterior = PosteriorDraws.from_arrays(sticky(10))
    assert posterior.kept.stride >= 10
    assert 4 * 300 / 3 < posterior.num_draws <= 4 * 300
    draws = posterior.sample(posterior.num_draws, np.random.default_rng(0))
    assert len(np.unique(draws, axis=0)) == len(draws)
    with pytest.raises(ValueError, match=r"n=4000 independent draws wanted.*effective sample size"):
        posterior.sample(4000, np.random.default_rng(0))
    assert "effective sample size" in repr(posterior)


def test_correlated_draws_said_to_be_independent_are_refused():
    posterior = PosteriorDraws.from_arrays(sticky(3), independent=True)
    with pytest.raises(ValueError, match=r"said to be independent.*effective sample size of"):
        posterior.sample(10, np.random.default_rng(0))


def test_chains_that_disagree_are_refused():
    draws = sticky(1)
    draws[0] = np.random.default_rng(9).dirichlet([9.0, 1.0], size=(300, 2, 1))
    posterior = PosteriorDraws.from_arrays(draws)
    with pytest.raises(ValueError, match=r"do not agree: r-hat is 1\.\d+.*effective"):
        posterior.stream(10, np.random.default_rng(0))


def test_split_shares_no_draw():
    posterior = PosteriorDraws.from_arrays(sticky(1, seed=3)[0], independent=True)
    one, two = posterior.split(100, np.random.default_rng(0))
    assert (one.num_draws, two.num_draws) == (100, 200)
    together = np.concatenate((one.chains[0], two.chains[0]))
    assert len(np.unique(together, axis=0)) == 300
    for bad in (0, 300):
        with pytest.raises(ValueError, match=r"first=|n="):
            posterior.split(bad, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda d: d[:, :, 0, :, 0], r"draws has shape"),
        (lambda d: d[:, :, :, :, 0], r"must be \(S, A, S\)"),
        (
            lambda d: np.where(np.arange(100)[:, None, None, None] == 7, np.nan, d),
            "draw 7 holds nan",
        ),
        (lambda d: d * 0.9, "sum to 0.9"),
        (lambda d: -d, r"probabilities lie in \[0, 1\]"),
        (lambda d: d[:, :0], "at least one draw"),
        (lambda d: d * (np.arange(3) > 0)[:, None, None], "state 0 has no successor"),
        (lambda d: d.astype(str), "numbers"),
    ],
)
def test_bad_draws(dense, spoil, message):
    with pytest.raises(ValueError, match=message):
        PosteriorDraws.from_arrays(spoil(dense))


def test_draws_and_model_must_agree(dense):
    mdp = machine_replacement().mdp
    with pytest.raises(ValueError, match="the model is"):
        PosteriorDraws.from_arrays(dense, mdp=mdp)
    with pytest.raises(ValueError, match="45"):
        PosteriorDraws.from_arrays(np.ones((5, 44)), mdp=mdp)
    everywhere = np.full((5, 10, 2, 10), 0.1)
    with pytest.raises(ValueError, match="cannot reach"):
        PosteriorDraws.from_arrays(everywhere, mdp=mdp)


def test_callers_array_is_copied(dense):
    mine = dense.copy()
    posterior = PosteriorDraws.from_arrays(mine)
    mine[:] = 0
    assert posterior.chains.max() > 0
