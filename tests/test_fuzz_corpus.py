"""What fuzzing found once, and a few inputs that reached something: read again every time."""

import pytest
from benchmarks.fuzz import CORPUS
from benchmarks.fuzz_parquet import parquet_test
from benchmarks.fuzz_targets import TARGETS, refuses_or_reads


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_reads_the_file_it_begins_with(name, tmp_path):
    target = TARGETS[name]
    path = tmp_path / target.name
    path.write_bytes(target.repair(target.seed()))
    target.read(path)


@pytest.mark.parametrize("name", TARGETS)
def test_inputs_are_read_or_refused_in_a_sentence(name, tmp_path):
    for path in sorted((CORPUS / name).glob("*")):
        refuses_or_reads(TARGETS[name], tmp_path, path.read_bytes())


def test_typed_parquet_is_read_or_refused_in_a_sentence(tmp_path):
    test = parquet_test(tmp_path)
    for path in sorted((CORPUS / "parquet").glob("*")):
        test(path.read_bytes())
    for seed in range(12):
        test(seed.to_bytes(4, "big"))
