"""Writing and reading the files of a run folder."""

import csv
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from surefoot._atomic import replacing
from surefoot.certificates.certificate import Certificate
from surefoot.certificates.search import Candidate
from surefoot.model.policies import AnyPolicy
from surefoot.pipeline.manifest import digest_of
from surefoot.pipeline.model import Model
from surefoot.report.tables import PolicyLine, policy_content, policy_lines

CANDIDATE_COLUMNS = ("candidate", "percentile", "nominal_return", "selected")
SEAL = "digest"
"""The key of a hash of all other content, which reveals later changes."""


def write_certificate(path: Path, certificate: Certificate) -> None:
    """Write ``certificate.json``."""
    content = json.loads(certificate.to_json())
    content[SEAL] = digest_of(content)
    with replacing(path, "w", encoding="utf-8") as file:
        file.write(json.dumps(content, indent=2, allow_nan=False) + "\n")


def read_certificate(path: Path) -> Certificate:
    """Read a certificate written by `write_certificate` or by version 0.1."""
    try:
        return Certificate.load(path)
    except (ValueError, TypeError) as problem:
        raise ValueError(f"{path}: {problem}") from None
    except RecursionError:
        raise ValueError(f"{path}: not a certificate (nested too deeply).") from None


def write_returns(path: Path, certificate: Certificate) -> None:
    """Write ``returns.npy``: the draws of a promise, which its file does not hold."""
    with replacing(path, "wb") as file:
        np.save(file, np.asarray(certificate.returns), allow_pickle=False)


def with_returns(path: Path, certificate: Certificate) -> Certificate:
    """Return a certificate with the draws of its promise, where a run folder has kept them."""
    if not path.is_file():
        return certificate
    try:
        returns = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as problem:
        raise ValueError(f"{path}: not a file of returns ({problem}).") from None
    if returns.shape != (certificate.draws,) or returns.dtype != np.float64:
        raise ValueError(
            f"{path}: {returns.shape} {returns.dtype}; it must hold the {certificate.draws} "
            "returns behind the certificate. Solve the log again."
        )
    return replace(certificate, returns=returns)


def lines_of(model: Model, policy: AnyPolicy) -> list[PolicyLine]:
    """Return a policy as lines, state by state, in the order of the run."""
    return policy_lines(
        model.mdp, model.placed, policy, model.passive, model.order,
        by_step=model.settings.by_step,
    )  # fmt: skip


def same_policy(path: Path, model: Model, certificate: Certificate) -> bool:
    """Return whether ``policy.json`` holds the policy of a certificate."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    lines = lines_of(model, certificate.policy)
    wanted = policy_content(lines, model.settings.columns)
    return isinstance(content, dict) and all(content.get(k) == v for k, v in wanted.items())


def is_unchanged(path: Path) -> bool:
    """Return whether ``certificate.json`` is as it was written."""
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return bool(content.pop(SEAL, None) == digest_of(content))
    except (ValueError, AttributeError, RecursionError):
        return False


def write_candidates(path: Path, candidates: Sequence[Candidate]) -> None:
    """Write ``candidates.csv``."""
    with replacing(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(CANDIDATE_COLUMNS)
        for line in candidates:
            numbers = (f"{value!r}" for value in (line.percentile, line.nominal_return))
            writer.writerow((line.name, *numbers, "yes" if line.selected else "no"))


def read_candidates(path: Path) -> tuple[Candidate, ...]:
    """Read the candidates that `write_candidates` wrote."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return tuple(
                Candidate(
                    name=line["candidate"],
                    percentile=float(line["percentile"]),
                    nominal_return=float(line["nominal_return"]),
                    selected=line["selected"] == "yes",
                )
                for line in csv.DictReader(file)
            )
    except (KeyError, ValueError, TypeError) as problem:
        raise ValueError(f"{path}: not a list of candidates ({problem}).") from None
