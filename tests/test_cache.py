"""The cache of compiled kernels: damaged, unwritable, never in the way."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from surefoot import _compile

CODE = """
from surefoot._compile import kernel

@kernel()
def plus_one(x):
    return x + 1
"""


def compiled(folder: Path, **environment: str) -> str:
    """Use a kernel in a process of its own and return what it prints."""
    (folder / "try_kernels.py").write_text(CODE, encoding="utf-8")
    made = subprocess.run(
        [sys.executable, "-c", "import try_kernels; print(try_kernels.plus_one(2))"],
        capture_output=True, text=True, check=False, cwd=folder,
        env=os.environ | {"SUREFOOT_CACHE_DIR": str(folder / "cache")} | environment,
    )  # fmt: skip
    return made.stdout + made.stderr


@pytest.mark.parametrize("ending", ["nbc", "nbi"])
def test_a_damaged_cache_is_compiled_again(tmp_path, ending):
    assert compiled(tmp_path) == "3\n"
    (file,) = (tmp_path / "cache").rglob(f"*.{ending}")
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    assert compiled(tmp_path) == "3\n"
    assert file.read_bytes() == whole or len(file.read_bytes()) >= len(whole) // 2 + 1


def test_a_cache_that_cannot_be_written_leaves_one_folder_at_most(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.touch()
    monkeypatch.setattr(_compile, "_cache_bases", lambda: [blocked])
    monkeypatch.setattr(_compile.tempfile, "gettempdir", lambda: str(tmp_path))
    find = _compile.cache_directory.__wrapped__
    assert find() == find()
    made = [path for path in tmp_path.iterdir() if path != blocked]
    assert len(made) == 1
    assert made[0].stat().st_mode & 0o077 == 0


def test_a_folder_that_others_may_write_is_not_trusted(tmp_path, monkeypatch):
    monkeypatch.setattr(_compile, "_cache_bases", list)
    monkeypatch.setattr(_compile.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(_compile.tempfile, "tempdir", str(tmp_path))
    open_to_all = tmp_path / f"surefoot-{os.getuid()}"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    found = _compile.cache_directory.__wrapped__()
    assert open_to_all not in found.parents
