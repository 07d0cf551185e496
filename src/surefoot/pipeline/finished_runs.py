"""Reading, verifying and reporting finished run folders."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from surefoot._workers import OnPart
from surefoot.certificates.comparison import same_policy
from surefoot.certificates.policies import read_policy
from surefoot.certificates.verification import Verification
from surefoot.data.buckets import BucketCounts
from surefoot.data.counts import Counts
from surefoot.pipeline import promises, run_files
from surefoot.pipeline.folder import FILES, RETURNS
from surefoot.pipeline.honest import model_for
from surefoot.pipeline.manifest import (
    NAME,
    PARTS,
    Manifest,
    check_brought,
    read_manifest,
    settings_of,
)
from surefoot.pipeline.model import Model
from surefoot.pipeline.page_content import write_report
from surefoot.pipeline.parts import LogParts, divide_log, has_episodes
from surefoot.pipeline.posteriors import Own
from surefoot.pipeline.runs import Run, computing, earlier_counts
from surefoot.pipeline.settings import Settings
from surefoot.solvers.gpu.device import check_device

NEEDED = ("config.toml", "certificate.json", "counts.npz", "candidates.csv")
"""The files needed to read a run; version 0.1 wrote these too."""
REPORT = "report.html"


def load_run(folder: str | Path, *, posterior: Own | None = None) -> Run:
    """Read a run folder; the model is made again from its counts and configuration.

    ``posterior`` is the one that `run` was given, if any.

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
    place = _checked(folder, NEEDED)
    how = f"pass it again, load_run({str(place)!r}, posterior=...)"
    check_brought(place, brought=posterior is not None, how=how)
    settings = settings_of(place)
    certificate = run_files.read_certificate(place / "certificate.json")
    return Run(
        folder=place,
        model=_model(settings, place, posterior),
        certificate=run_files.with_returns(place / RETURNS, certificate),
        candidates=run_files.read_candidates(place / "candidates.csv"),
    )


def _model(settings: Settings, place: Path, own: Own | None) -> Model:
    counts = earlier_counts(place)
    buckets = BucketCounts.load(place / PARTS) if settings.honest else None
    return model_for(settings, counts, buckets, own)


def stored_parts(settings: Settings, place: Path, counts: Counts) -> LogParts:
    """Return the parts of the log of a run, without the returns of its episodes."""
    if (place / PARTS).is_file():
        return LogParts(buckets=BucketCounts.load(place / PARTS))
    if has_episodes(settings):
        raise ValueError(
            f"{place}: this run folder has no {PARTS}, which says how its episodes are divided "
            "(earlier versions kept none). Solve its log again."
        )
    return divide_log(settings, counts)


def _checked(folder: str | Path, needed: Iterable[str]) -> Path:
    """Return a run folder after checking that it has the files needed."""
    place = Path(folder)
    if not place.is_dir():
        raise FileNotFoundError(f"{place}: there is no such folder.")
    missing = [name for name in needed if not (place / name).is_file()]
    if missing:
        raise ValueError(f"{place}: this is not a finished run folder (no {missing[0]}).")
    return place


def verify_run(
    folder: str | Path, rng: np.random.Generator | None = None, *, posterior: Own | None = None,
    cluster: str | None = None, device: str | None = None, told: OnPart | None = None,
) -> Verification:  # fmt: skip
    """Check a run folder: every file against its hash, and the promise on new draws.

    The hashes detect accidents, not intent: whoever changes a file on purpose can also write its
    new hash. The promise is checked again from the counts, and the policy files must hold the
    policy that was certified. ``posterior`` is the one that `run` was given, if any. With a
    ``cluster`` ("local", "auto" or an address) its workers share the draws, and ``told`` is called
    with their progress. New draws need not be made on the ``device`` of the run: None means the CPU
    for a run that requested it, and "auto" for all others, so that any machine can verify any run.

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
    place = _checked(folder, NEEDED)
    if not (place / NAME).is_file():
        raise ValueError(
            f"{place}: this run folder has no {NAME} (version 0.1 wrote none), so nothing shows "
            "whether its files are as they were written. Solve its log again, or add its counts "
            "to a new run with --add."
        )
    wrong = _altered(place)
    if wrong is not None:
        return promises.falls(wrong)
    stored = load_run(place, posterior=posterior)
    path = stored.folder / "policy.csv"
    policy = read_policy(
        path, stored.model.mdp, columns=stored.settings.columns, by_step=stored.settings.by_step
    )
    if not same_policy(stored.model.mdp, policy, stored.certificate.policy):
        return promises.falls(f"{path} is not the policy that was certified.")
    path = stored.folder / "policy.json"
    if not run_files.same_policy(path, stored.model, stored.certificate):
        return promises.falls(f"{path} is not the policy that was certified.")
    with computing(replace(stored.settings, cluster=cluster), told):
        where = check_device(device or ("cpu" if stored.settings.device == "cpu" else "auto"))
        verdict = promises.check_again(stored.model, stored.certificate, rng, where)
    return promises.with_failures(verdict, stored.certificate)


def _altered(place: Path) -> str | None:
    """Return a message about the first file that is not as it was written, or None."""
    try:
        manifest = read_manifest(place)
    except ValueError as problem:
        return str(problem)
    _checked(place, manifest.files)
    unlisted = [name for name in FILES if name != NAME and name not in manifest.files]
    if unlisted:
        return f"{place / NAME} does not list {unlisted[0]}."
    damaged = manifest.damaged(place)
    if damaged:
        return f"{place / damaged[0]} was changed after it was written."
    path = place / "certificate.json"
    if not run_files.is_unchanged(path):
        return f"{path} was changed after it was written."
    return None


def report_run(
    folder: str | Path, *, posterior: Own | None = None, cluster: str | None = None,
    told: OnPart | None = None,
) -> Path:  # fmt: skip
    """Write the report of a run again and return its path; the manifest gets its new hash.

    The workers of a ``cluster`` share the draws behind the figures, as for `verify_run`.
    """
    stored = load_run(folder, posterior=posterior)
    manifest = _manifest_for_report(stored.folder)
    with computing(replace(stored.settings, cluster=cluster), told):
        write_report(stored.model, stored.folder, stored.certificate, stored.candidates)
    if manifest is not None:
        manifest.with_files(stored.folder, [REPORT]).write(stored.folder)
    return stored.folder / REPORT


def _manifest_for_report(place: Path) -> Manifest | None:
    """Return the manifest after checking all files but the report; None for version 0.1."""
    if not (place / NAME).is_file():
        return None
    manifest = read_manifest(place)
    damaged = [name for name in manifest.damaged(place) if name != REPORT]
    if damaged:
        raise ValueError(
            f"{place / damaged[0]} is missing or was changed after it was written; a report would "
            "hide that."
        )
    return manifest
