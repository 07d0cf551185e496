"""One small run, made once."""

from dataclasses import replace

import pytest

from surefoot.demo import demo_settings
from surefoot.pipeline.runs import run

SMALL = {"draws": 600, "eta": 0.01}


@pytest.fixture(scope="session")
def settings():
    return replace(demo_settings(), **SMALL)


@pytest.fixture(scope="session")
def finished(settings, tmp_path_factory):
    return run(settings, tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture
def small_log(tmp_path):
    """Two states, costs 0 to 5, actions with different luck."""
    lines = ["state,action,cost,next_state"]
    for i in range(60):
        lines.append(f"up,wait,{0 if i % 3 else 5},{'up' if i % 3 else 'down'}")
        lines.append(f"up,mend,1,{'up' if i % 10 else 'down'}")
        lines.append(f"down,wait,5,{'down' if i % 5 else 'up'}")
        lines.append(f"down,mend,2,{'up' if i % 4 else 'down'}")
    path = tmp_path / "costs.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
