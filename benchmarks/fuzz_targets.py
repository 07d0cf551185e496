"""Everything our own code parses, as functions of bytes: what fuzzing throws things at.

A target may refuse its input with a ``ValueError`` or an ``OSError``, which the command line shows
as one sentence. Anything else is a bug.
"""

import io
import json
import tempfile
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from surefoot.certificates.policies import read_policy
from surefoot.data.buckets import BucketCounts
from surefoot.data.counts import Counts
from surefoot.data.discretization import Discretization
from surefoot.data.npz_files import _digest
from surefoot.data.returns import Returns
from surefoot.data.transitions import read_transitions
from surefoot.model.files import read_mdp, write_mdp
from surefoot.pipeline.manifest import digest_of, read_manifest
from surefoot.pipeline.run_files import read_candidates, read_certificate
from surefoot.pipeline.settings import Settings
from surefoot.pipeline.side_files import read_allowed, read_initial
from surefoot.posterior.stan import read_file

REFUSALS = (ValueError, OSError)
LOG = b"state,action,reward,next_state\na,x,1,b\nb,x,0,a\na,y,.5,a\nb,y,2,b\n"


class Target(NamedTuple):
    """How one kind of file is read, and a file to begin with."""

    name: str
    read: Callable[[Path], Any]
    seed: Callable[[], bytes]
    repair: Callable[[bytes], bytes] = bytes


def refuses_or_reads(target: Target, folder: Path, data: bytes) -> None:
    """Let a target read some bytes; only what is not a refusal comes through."""
    path = folder / target.name
    path.write_bytes(target.repair(data))
    try:
        target.read(path)
    except REFUSALS:
        return


@cache
def small_counts() -> Counts:
    """Return the counts of a small log."""
    columns = {"state": list("abab"), "action": list("xxyy"), "reward": [1.0, 0.0, 0.5, 2.0]}
    return read_transitions(columns | {"next_state": list("baab")})


def _saved_counts() -> bytes:
    return _bytes(small_counts().save)


def _bytes(save: Callable[[Path], Any], name: str = "file.npz") -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        save(Path(folder) / name)
        return (Path(folder) / name).read_bytes()


def unpacked(data: bytes) -> bytes:
    """Return an npz file without compression or checksums to run into: names, sizes, contents."""
    out = b""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in archive.namelist():
            content = archive.read(name)
            out += bytes([len(name)]) + name.encode() + len(content).to_bytes(2, "big") + content
    return out


def packed(data: bytes) -> bytes:
    """Return the npz file of what `unpacked` returned, whatever was done to it."""
    out, at = io.BytesIO(), 0
    with zipfile.ZipFile(out, "w") as archive:
        while at < len(data):
            name = data[at + 1 : at + 1 + data[at]].decode("latin-1")
            at += 1 + data[at]
            size = int.from_bytes(data[at : at + 2], "big")
            entry = zipfile.ZipInfo(name)  # which cuts a name at its first null
            if entry.filename not in ("", *archive.namelist()):
                archive.writestr(entry, data[at + 2 : at + 2 + size])
            at += 2 + size
    return out.getvalue()


def _counts_with_digest(data: bytes) -> bytes:
    """Give counts the digest that belongs to them, so that the checks behind it are reached."""
    made = packed(data)
    try:
        with np.load(io.BytesIO(made), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = str(arrays.pop("about"))
        arrays.pop("digest", None)
        out = io.BytesIO()
        np.savez(out, about=np.array(about), digest=np.array(_digest(about, arrays)), **arrays)
        return out.getvalue()
    except Exception:  # nothing to repair: the reader has to refuse it
        return made


def _manifest_with_digest(data: bytes) -> bytes:
    try:
        content = json.loads(data)
        content.pop("digest", None)
        content["digest"] = digest_of(content)
        return json.dumps(content).encode()
    except Exception:
        return data


def _manifest() -> bytes:
    content: dict[str, Any] = {"format": 1, "identity": {"surefoot": "1", "settings": {}}}
    content |= {"inputs": {"log": []}, "files": {"counts.npz": "00"}}
    return json.dumps(content | {"digest": ""}).encode()


def _certificate() -> bytes:
    from surefoot import DirichletPosterior, certify

    placed = small_counts().on_support("observed")
    posterior, mdp = DirichletPosterior(placed, prior=1.0), placed.to_mdp(discount=0.5)
    policy = mdp.row_action[mdp.state_start[:-1]]
    rng = np.random.default_rng(0)
    return certify(policy, posterior, mdp, delta=0.2, draws=100, rng=rng).to_json().encode()


def _discretization() -> bytes:
    from surefoot.data.discretization import discretize

    numbers = np.random.default_rng(0).normal(size=(20, 2))
    return _bytes(discretize(numbers, bins=2).save)


def _parts() -> bytes:
    whole, part = np.arange(4), np.ones(4)
    out = io.BytesIO()
    np.savez(
        out, entry=whole, bucket=whole, count=whole + 1, reward_mean=part, reward_var=part,
        starts=np.ones((16, 2), dtype=np.int64),
    )  # fmt: skip
    return out.getvalue()


def _episodes() -> bytes:
    number = np.arange(3)
    made = Returns(
        discount=0.9, seed=0, horizon=None, identity=number.astype(np.uint64),
        earned=number / 2, steps=number + 1, ended=number > 0, reached=number - 1, until=number / 1,
    )  # fmt: skip
    return _bytes(made.save)


@cache
def _model() -> Any:
    return small_counts().to_mdp(discount=0.5, support="observed")


def _write(path: Path) -> None:
    write_mdp(_model(), path)


MODEL = b"idstatefrom,idaction,idstateto,probability,reward\n0,0,0,0.5,1\n0,0,1,0.5,0\n1,0,1,1,0\n"
STAN = b"# num_warmup = 1\nlp__,p.1,p.2\n-1,0.5,0.5\n-2,0.25,0.75\n# done\n"
CONFIG = b'log = "log.csv"\nstate = ["a", "b"]\ndelta = 0.1\ndiscount = 0.9\ndraws = 500\n'
TARGETS = {
    "model_csv": Target("m.csv", lambda path: read_mdp(path, discount=0.5), lambda: MODEL),
    "model_npz": Target(
        "m.npz",
        read_mdp,
        lambda: unpacked(_bytes(_write)),
        packed,
    ),
    "counts_npz": Target(
        "c.npz", Counts.load, lambda: unpacked(_saved_counts()), _counts_with_digest
    ),
    "counts_zip": Target("c.npz", Counts.load, _saved_counts),
    "parts_npz": Target("p.npz", BucketCounts.load, lambda: unpacked(_parts()), packed),
    "episodes_npz": Target("e.npz", Returns.load, lambda: unpacked(_episodes()), packed),
    "discretization_npz": Target(
        "d.npz", Discretization.load, lambda: unpacked(_discretization()), packed
    ),
    "certificate_json": Target("c.json", read_certificate, _certificate),
    "manifest_json": Target(
        "manifest.json", lambda path: read_manifest(path.parent), _manifest, _manifest_with_digest
    ),
    "config_toml": Target(
        "c.toml", lambda path: Settings.from_toml(path).check_complete(), lambda: CONFIG
    ),
    "candidates_csv": Target(
        "c.csv",
        read_candidates,
        lambda: b"candidate,percentile,nominal_return,selected\nmean,1.5,2.0,yes\n",
    ),
    "policy_csv": Target(
        "p.csv",
        lambda path: read_policy(path, _model()),
        lambda: b"state,action,probability\na,x,0.5\na,y,0.5\nb,x,1\n",
    ),
    "initial_csv": Target(
        "i.csv",
        lambda path: read_initial(Settings(initial=str(path)), small_counts()),
        lambda: b"state,probability\na,0.5\nb,0.5\n",
    ),
    "allowed_csv": Target(
        "a.csv",
        lambda path: read_allowed(
            Settings(allowed=str(path)), _model(), np.zeros(_model().num_states, dtype=np.bool_)
        ),
        lambda: b"state,action\na,x\nb,y\n",
    ),
    "stan_csv": Target("s.csv", read_file, lambda: STAN),
    "log_csv": Target("l.csv", read_transitions, lambda: LOG),
    "support_csv": Target(
        "s.csv",
        lambda path: small_counts().on_support(str(path)),
        lambda: b"state,action,next_state\na,x,b\nb,x,a\na,y,a\nb,y,b\na,x,a\n",
    ),
    "rewards_csv": Target(
        "r.csv",
        lambda path: small_counts().with_rewards(str(path)),
        lambda: b"state,action,reward\na,x,1\na,y,2\nb,x,3\nb,y,4\n",
    ),
}
"""By name; log, support and rewards go through DuckDB and are slower."""
