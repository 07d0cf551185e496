"""``manifest.json``: what determines the answer of a run, and a hash of every file in its folder.

The hashes detect accidents, not intent: whoever changes a file on purpose can also write its new
hash.
"""

import hashlib
import json
import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from surefoot._atomic import replacing
from surefoot._version import __version__
from surefoot.pipeline.log_stamps import files_of_log, looks_like, stamp_of
from surefoot.pipeline.setting import declared
from surefoot.pipeline.settings import Settings

FORMAT = 1
"""Version of the layout of manifest.json."""
NAME, CONFIG, COUNTS, INPUTS = "manifest.json", "config.toml", "counts.npz", "inputs"
PARTS = "parts.npz"
"""The parts of a log, kept if dividing again would need the log: counts and sums, no records."""
EPISODES = "episodes.npz"
"""What each episode earned, so that a later log can continue it: hashed labels and sums, no
records."""
ADDED = {COUNTS: "add", PARTS: "add_parts", EPISODES: "add_episodes"}
"""The files read from the run that a log is added to, and their names in the identity."""
_ADDED_FILES = {name: file for file, name in ADDED.items()}
_NOT_COPIED = {"log", *_ADDED_FILES}
POSTERIOR = "posterior"
"""The key in a run's identity for a user's own posterior: what made it, and its fingerprint."""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What a run was made from and what it consists of.

    Attributes
    ----------
    identity
        Everything that determines the answer: version, settings, contents of all files read, and
        the user's own posterior, if any.
    inputs
        Where those files were, by setting, and their copies in the folder.
    files
        The hash of each file of the folder.
    """

    identity: dict[str, Any]
    inputs: dict[str, Any]
    files: dict[str, str]

    def write(self, folder: Path) -> None:
        """Write the manifest of a folder."""
        content = {"format": FORMAT, **asdict(self)}
        content["digest"] = digest_of(content)
        with replacing(folder / NAME, "w", encoding="utf-8") as file:
            file.write(json.dumps(content, indent=2, allow_nan=False) + "\n")

    def with_posterior(self, fingerprint: str) -> "Manifest":
        """Return the manifest with the fingerprint of the user's posterior."""
        known = self.identity[POSTERIOR] | {"fingerprint": fingerprint}
        return replace(self, identity=self.identity | {POSTERIOR: known})

    def with_files(self, folder: Path, names: Iterable[str]) -> "Manifest":
        """Return the manifest with the present hashes of these files."""
        return replace(self, files=self.files | {name: sha256(folder / name) for name in names})

    def damaged(self, folder: Path) -> list[str]:
        """Return the files of the folder that are missing or not as they were written."""
        return [name for name, known in self.files.items() if not _is_intact(folder / name, known)]


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a folder; ValueError says what is wrong with it."""
    path = folder / NAME
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        kept = content.pop("digest")
        if content["format"] != FORMAT:
            raise ValueError(
                f"{path}: format {content['format']!r}, but this version reads format {FORMAT}."
            )
        if kept != digest_of(content):
            raise ValueError(f"{path} was changed after it was written.")
        return Manifest(
            identity=dict(content["identity"]),
            inputs=dict(content["inputs"]),
            files={str(name): str(known) for name, known in dict(content["files"]).items()},
        )
    except (KeyError, TypeError, AttributeError, RecursionError, UnicodeDecodeError) as problem:
        raise ValueError(f"{path}: not a manifest ({type(problem).__name__}).") from None
    except json.JSONDecodeError as problem:
        raise ValueError(f"{path}: not a manifest ({problem}).") from None


def check_as_written(folder: Path, *names: str) -> None:
    """Refuse files of a run that were changed after it; runs of version 0.1 cannot be checked."""
    if not (folder / NAME).is_file():
        return
    changed = set(names) & set(read_manifest(folder).damaged(folder))
    if changed:
        raise ValueError(f"{folder / min(changed)} was changed after it was written.")


def take_stock(settings: Settings, posterior: str | None = None) -> Manifest:
    """Return the manifest of a run that is about to begin; reads every input once.

    ``posterior`` names what made the user's own posterior, if there is one.
    """
    log = [_stamp(path) for path in files_of_log(settings.log)]
    side = {name: _stamp(path) for name, path in settings.side_files().items()}
    inputs: dict[str, Any] = {"log": log}
    for name, stamp in side.items():
        inputs[name] = stamp | {"file": f"{INPUTS}/{name}{''.join(Path(stamp['name']).suffixes)}"}
    contents: dict[str, Any] = {"log": [stamp["sha256"] for stamp in log]}
    contents |= {name: stamp["sha256"] for name, stamp in side.items()}
    for file, name in ADDED.items() if settings.add is not None else ():
        path = Path(str(settings.add)) / file
        if file == COUNTS or path.is_file():
            inputs[name] = _stamp(path) | {"name": settings.add}
            contents[name] = inputs[name]["sha256"]
    values = {
        name: value
        for name, (one, _) in declared(settings).items()
        if one.matters and name not in contents and (value := getattr(settings, name)) is not None
    }
    identity: dict[str, Any] = {
        "surefoot": __version__,
        "settings": values,
        "contents": contents,
    }
    if posterior is not None:
        identity[POSTERIOR] = {"made_by": posterior}
    return Manifest(identity=json.loads(json.dumps(identity)), inputs=inputs, files={})


def check_unchanged(manifest: Manifest) -> None:
    """Refuse a run whose inputs changed during it: which version it read is unknown."""
    for name, stamps in manifest.inputs.items():
        for stamp in stamps if name == "log" else [stamps]:
            path = Path(stamp["name"])
            path = path / _ADDED_FILES[name] if name in _ADDED_FILES else path
            if path.is_file() and not looks_like(path, stamp) and sha256(path) != stamp["sha256"]:
                raise ValueError(
                    f"{path} changed while the run was going on. Run the same command again."
                )


def copy_inputs(manifest: Manifest, folder: Path) -> Manifest:
    """Copy the side files into the folder and return the manifest that lists them."""
    copies = [stamp for name, stamp in manifest.inputs.items() if name not in _NOT_COPIED]
    if copies:
        (folder / INPUTS).mkdir(exist_ok=True)
    for stamp in copies:
        with Path(stamp["name"]).open("rb") as source, replacing(folder / stamp["file"]) as copy:
            shutil.copyfileobj(source, copy)
    return manifest.with_files(folder, [stamp["file"] for stamp in copies])


def settings_of(folder: Path) -> Settings:
    """Return the settings of a run folder; they name the copies of files inside the folder."""
    return with_copies(Settings.from_toml(folder / CONFIG), folder / CONFIG)


def with_copies(settings: Settings, config: Path) -> Settings:
    """Return settings that name a run's copies of files if ``config`` lies in a run folder."""
    folder = config.parent
    if config.name != CONFIG or not (folder / NAME).is_file():  # or written by version 0.1
        return settings
    inputs = read_manifest(folder).inputs
    copies: dict[str, Any] = {
        name: str(folder / stamp["file"])
        for name, stamp in inputs.items()
        if name not in _NOT_COPIED
    }
    return replace(settings, **copies)


def difference(old: dict[str, Any], new: dict[str, Any]) -> str:
    """Return the first difference between two identities in words; "" if they agree.

    Examples
    --------
    >>> old = {"surefoot": "1", "settings": {"seed": 0}, "contents": {"log": ["a"]}}
    >>> difference(old, old | {"settings": {"seed": 1}})
    'another seed'
    >>> difference(old, old | {"contents": {"log": ["b"]}})
    'another log'
    """
    if old.get("surefoot") != new["surefoot"]:
        return "another version of surefoot"
    if _maker(old) != _maker(new):
        return "another posterior"
    for part in ("settings", "contents"):
        before, after = old.get(part, {}), new[part]
        for name in (*after, *before):
            if before.get(name) != after.get(name):
                return f"another {name}"
    return ""


def _maker(identity: dict[str, Any]) -> str | None:
    """Return what made the user's posterior; None if there is none."""
    made: str | None = identity.get(POSTERIOR, {}).get("made_by")
    return made


def check_brought(folder: Path, *, brought: bool, how: str) -> None:
    """Refuse to read a run without its user's posterior, or with one it was not made with.

    ``how`` says how to pass the posterior.
    """
    made_by = _maker(read_manifest(folder).identity) if (folder / NAME).is_file() else None
    if made_by is not None and not brought:
        raise ValueError(
            f"{folder}: this run rests on a posterior that was passed from Python, made by "
            f"{made_by}. A folder cannot hold it: {how}."
        )
    if made_by is None and brought:
        raise ValueError(
            f"{folder}: this run was made without posterior= and cannot use one. Leave it out."
        )


def sha256(path: Path) -> str:
    """Return the hash of a file's contents."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file.")
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _stamp(path: Path) -> dict[str, Any]:
    known = sha256(path)
    return stamp_of(path) | {"sha256": known}


def _is_intact(path: Path, known: str) -> bool:
    return path.is_file() and not path.is_symlink() and sha256(path) == known


def digest_of(content: dict[str, Any]) -> str:
    """Return the hash of JSON content, independent of order and formatting."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
