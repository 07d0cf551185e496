"""Small runs and their pages, and a real browser."""

import csv
import os
import shutil
from dataclasses import replace

import numpy as np
import pytest

from requirements import lacking
from surefoot import Finding, Settings, run
from surefoot.demo import demo_settings
from surefoot.pipeline.page_content import make_page

QUICK = {"draws": 300, "eta": 0.05}
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    settings = replace(demo_settings(), unit="kEUR", **QUICK)
    return run(settings, tmp_path_factory.mktemp("report") / "demo")


def write(path, head, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([head, *rows])
    return str(path)


@pytest.fixture(scope="session")
def pumps(tmp_path_factory):
    """Two state columns, and costs."""
    folder = tmp_path_factory.mktemp("report")
    rng = np.random.default_rng(3)
    rows = []
    for pump in range(20):
        age, shake = int(rng.integers(2)), 0
        for week in range(30):
            action = "overhaul" if rng.random() < 0.2 + 0.2 * shake else "run"
            cost = 500 if action == "overhaul" else (10, 60, 900)[shake]
            rows.append((pump, week, ("new", "old")[age], ("a low", "b raised", "c alarm")[shake],
                         action, cost))  # fmt: skip
            if action == "overhaul":
                age, shake = 0, 0
            else:
                shake = min(2, shake + int(rng.random() < 0.2 + 0.3 * age))
                age = max(age, int(rng.random() < 0.1))
    head = ("pump", "week", "age", "vibration", "action", "cost")
    settings = Settings(
        log=write(folder / "pumps.csv", head, rows), state=("age", "vibration"), reward="cost",
        episode="pump", step="week", discount=0.9, costs=True, unit="EUR", **QUICK,
    )  # fmt: skip
    return run(settings, folder / "run")


def page_of(made, **changes):
    return make_page(made.model, replace(made.certificate, **changes), made.candidates, "a = 1\n")


@pytest.fixture(scope="session")
def pages(demo, pumps):
    """Pages by what is special about them."""
    failed = Finding.of("not_markov", p_value=1e-9)
    mismatch = Finding.of("behaviour_mismatch", log=5.0, model=7.0)
    plain = page_of(demo)
    many = [
        replace(plain.rows[i % 10], state=(f"stock {i}",), order=(i,), find=f"stock {i} run")
        for i in range(300)
    ]
    return {
        "demo": plain,
        "grid of costs": page_of(pumps),
        "mismatch": page_of(demo, findings=(*demo.certificate.findings, mismatch)),
        "withheld": page_of(demo, findings=(*demo.certificate.findings, failed)),
        "300 states": replace(plain, rows=many, num_states=400),
        "long words": replace(
            plain, columns=("c" * 40,), rows=[replace(plain.rows[0], state=("x" * 60,))],
            rule="w" * 90, sentence="s" * 300,
        ),
    }  # fmt: skip


@pytest.fixture(scope="session")
def browser():
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        lacking("browser", "playwright is not installed")
    program = next((path for name in CHROMIUM if (path := shutil.which(name))), None)
    if program is None:
        lacking("browser", "there is no chromium; apt-get install chromium")
    with sync_playwright() as playwright:
        # As root, as in a container, chromium has no sandbox of its own.
        options = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        opened = playwright.chromium.launch(executable_path=program, args=options)
        yield opened
        opened.close()
