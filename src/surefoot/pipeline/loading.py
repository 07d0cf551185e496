"""A finished run folder, read back."""

from pathlib import Path

import numpy as np

from surefoot.certificates.policies import read_policy
from surefoot.certificates.verification import Verification
from surefoot.pipeline import promising, writing
from surefoot.pipeline.folder import FILES, is_run
from surefoot.pipeline.model import build_model
from surefoot.pipeline.reporting import write_report
from surefoot.pipeline.running import Run, earlier_counts, processors
from surefoot.pipeline.settings import Settings


def load_run(folder: str | Path) -> Run:
    """Read a run folder; the model is made again from its counts and configuration.

    Examples
    --------
    >>> import tempfile
    >>> from dataclasses import replace
    >>> from surefoot import run
    >>> from surefoot.demo import demo_settings
    >>> with tempfile.TemporaryDirectory() as place:
    ...     made = run(replace(demo_settings(), draws=500), Path(place, "run"))
    ...     load_run(Path(place, "run")).certificate.promise == made.certificate.promise
    True
    """
    place = Path(folder)
    if not place.is_dir():
        raise FileNotFoundError(f"{place}: there is no such folder.")
    missing = [name for name in FILES if not (place / name).is_file()]
    if not is_run(place) or "counts.npz" in missing or "candidates.csv" in missing:
        raise ValueError(f"{place}: this is not a finished run folder (no {missing[0]}).")
    settings = Settings.from_toml(place / "config.toml")
    return Run(
        folder=place,
        model=build_model(settings, earlier_counts(place)),
        certificate=writing.read_certificate(place / "certificate.json"),
        candidates=writing.read_candidates(place / "candidates.csv"),
    )


def verify_run(folder: str | Path, rng: np.random.Generator | None = None) -> Verification:
    """Check the certificate of a run again, from its counts and configuration.

    Also checks that ``policy.csv`` and ``policy.json`` are the policy that was certified, and that
    nobody changed the certificate's other numbers.

    Examples
    --------
    >>> import tempfile
    >>> from dataclasses import replace
    >>> from surefoot import run
    >>> from surefoot.demo import demo_settings
    >>> with tempfile.TemporaryDirectory() as place:
    ...     _ = run(replace(demo_settings(), draws=500), Path(place, "run"))
    ...     verify_run(Path(place, "run"), np.random.default_rng(0)).stands
    True
    """
    stored = load_run(folder)
    path = stored.folder / "policy.csv"
    policy = read_policy(path, stored.model.mdp)
    if not np.array_equal(policy, stored.certificate.policy):
        return promising.falls(f"{path} is not the policy that was certified.")
    path = stored.folder / "policy.json"
    if not writing.same_policy(path, stored.model, stored.certificate):
        return promising.falls(f"{path} is not the policy that was certified.")
    with processors(stored.model.settings):
        verdict = promising.check_again(stored.model, stored.certificate, rng)
    path = stored.folder / "certificate.json"
    if verdict.stands and not writing.is_unchanged(path):
        return promising.falls(f"{path} was changed after it was written.")
    return verdict


def report_run(folder: str | Path) -> Path:
    """Write the report of a run again and return its path."""
    stored = load_run(folder)
    with processors(stored.model.settings):
        write_report(stored.model, stored.folder, stored.certificate, stored.candidates)
    return stored.folder / "report.html"
