"""``help(...)`` of every public name is readable: types by the names people know."""

import inspect
import pydoc
import re

import pytest

import surefoot

THINGS = [
    name
    for name in surefoot.__all__
    if inspect.isclass(getattr(surefoot, name)) or inspect.isfunction(getattr(surefoot, name))
]
LONG = re.compile(r"numpy\._typing|numpy\.ndarray\[|surefoot\.\w+\.|collections\.abc|pathlib\._")


@pytest.mark.parametrize("name", THINGS)
def test_signatures_name_types_shortly(name):
    text = pydoc.plain(pydoc.render_doc(getattr(surefoot, name)))
    signatures = re.findall(r"^[ |]*(\w+\(.*(?:: |-> ).*\).*)$", text, flags=re.M)
    long = [line for line in signatures if LONG.search(line)]
    assert not long, long[0][:300]
