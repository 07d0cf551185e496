"""What people do in a notebook, in a real kernel (without ipywidgets)."""

import nbclient
import nbformat
import pytest

CELL = """
import surefoot
from surefoot.demo import log_path
counts = surefoot.read_transitions(
    log_path(), state="condition", action="decision", reward="profit", episode="machine",
    step="week",
)
print(counts)
counts
"""


@pytest.mark.filterwarnings("default")
def test_a_log_is_read_in_a_kernel(tmp_path):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    client = nbclient.NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    )
    client.execute()
    printed, shown = notebook.cells[0].outputs
    assert printed["text"].startswith("Counts(")
    assert "<div" in shown["data"]["text/html"]
