"""Pages in a real browser: light and dark, wide and narrow, on paper, and without a network."""

import html
from dataclasses import replace

import pytest

from requirements import lacking
from surefoot.pipeline.runs import run
from surefoot.pipeline.several_runs import compare_report
from surefoot.report.what_if_page import Dot, WhatIfPage

WIDE, PHONE = (1200, 900), (360, 740)
KINDS = ("demo", "grid of costs", "withheld", "300 states", "long words")
BEYOND = """() => [...document.querySelectorAll('body *')].filter(e => {
  const r = e.getBoundingClientRect(); return r.width && r.height && r.right > innerWidth + 1;
}).map(e => e.tagName + ' ' + e.className).slice(0, 5)"""
"""What lies beyond the right edge of the screen."""


def test_what_is_required_is_not_skipped(monkeypatch):
    monkeypatch.setenv("SUREFOOT_REQUIRE", "cluster,browser")
    with pytest.raises(pytest.fail.Exception, match="there is none"):
        lacking("browser", "there is none")
    monkeypatch.setenv("SUREFOOT_REQUIRE", "cluster")
    with pytest.raises(pytest.skip.Exception):
        lacking("browser", "there is none")


@pytest.fixture(scope="module")
def places(pages, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    for name, page in pages.items():
        (folder / f"{name}.html").write_text(page.to_html(), encoding="utf-8")
    return folder


@pytest.fixture
def opened(browser):
    """Open a page; nothing but itself may be asked for, and nothing may be complained about."""
    contexts, trouble = [], []

    def show(path, size=WIDE, scheme="light", **more):
        context = browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, **more
        )
        contexts.append(context)
        tab = context.new_page()
        own = path.resolve().as_uri()
        tab.on("request", lambda asked: trouble.append(asked.url) if asked.url != own else None)
        tab.on("console", lambda said: trouble.append(said.text))
        tab.on("pageerror", lambda error: trouble.append(str(error)))
        tab.goto(own)
        return tab

    yield show
    for context in contexts:
        context.close()
    assert trouble == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("size", "scheme"), [(WIDE, "light"), (PHONE, "dark")], ids=["wide light", "phone dark"]
)
def test_nothing_is_off_screen_and_words_can_be_read(places, opened, kind, size, scheme):
    tab = opened(places / f"{kind}.html", size, scheme)
    assert tab.evaluate("document.documentElement.scrollWidth") <= size[0]
    assert tab.evaluate(BEYOND) == []
    background, ink = tab.evaluate(
        "() => { const s = getComputedStyle(document.body); return [s.backgroundColor, s.color]; }"
    )
    light, dark = ((brightness(background), brightness(ink)) if scheme == "light"
                   else (brightness(ink), brightness(background)))  # fmt: skip
    assert light - dark > 120
    word = tab.locator(".head svg:visible text").first
    assert (
        abs(brightness(word.evaluate("e => getComputedStyle(e).fill")) - brightness(background))
        > 60
    )


def brightness(colour):
    numbers = [float(part) for part in colour.split("(")[1].rstrip(")").split(",")[:3]]
    return sum(numbers) / 3


def test_the_head_is_above_the_fold(places, opened):
    tab = opened(places / "demo.html")
    assert tab.locator(".head").bounding_box()["height"] < 700
    small = opened(places / "demo.html", PHONE)
    assert small.locator(".head p").nth(1).bounding_box()["y"] < PHONE[1] / 2


def test_a_withheld_promise_is_large_and_first(places, opened):
    tab = opened(places / "withheld.html", PHONE)
    stop = tab.locator(".stop strong")
    assert stop.inner_text() == "NOT CERTIFIED"
    size = "e => parseFloat(getComputedStyle(e).fontSize)"
    assert stop.evaluate(size) > tab.locator(".rule").evaluate(size)
    assert stop.bounding_box()["y"] < 200


@pytest.mark.parametrize("kind", ["demo", "grid of costs", "withheld", "300 states"])
def test_on_paper_it_is_two_or_three_pages(places, opened, kind):
    tab = opened(places / f"{kind}.html", scheme="dark")
    paper = tab.pdf(format="A4")
    assert paper.count(b"/Type /Page\n") + paper.count(b"/Type /Page ") in (2, 3)


def test_every_figure_says_what_it_shows(places, opened):
    tab = opened(places / "grid of costs.html")
    names = tab.locator("svg").evaluate_all("all => all.map(e => e.getAttribute('aria-label'))")
    assert len(names) >= 5
    assert all(len(name) > 20 for name in names)
    assert tab.locator("svg").evaluate_all("all => all.every(e => e.getAttribute('role') == 'img')")


def test_the_table_can_be_searched_and_sorted(places, opened):
    tab = opened(places / "300 states.html")
    rows = tab.locator("tbody.states tr:visible")
    assert rows.count() == 300
    tab.get_by_role("searchbox").fill("stock 27")
    assert rows.count() == 13  # 27, 127, 227, 270 to 279
    tab.get_by_role("searchbox").fill("")
    tab.get_by_role("button", name="gain").click()
    tab.get_by_role("button", name="gain").click()
    gains = rows.evaluate_all("all => all.map(e => parseFloat(e.children[3].dataset.sort))")
    assert gains == sorted(gains, reverse=True)
    tab.get_by_role("button", name="condition").click()
    assert rows.nth(2).inner_text().startswith("stock 2")
    assert rows.nth(10).inner_text().startswith("stock 10")


def test_without_scripts_it_is_a_table(places, opened):
    tab = opened(places / "300 states.html", java_script_enabled=False)
    assert tab.locator("tbody.states tr").count() == 300
    assert tab.locator("input").count() == 0


def test_runs_are_compared_on_one_page(demo, tmp_path, opened):
    other = run(replace(demo.settings, discount=0.9, delta=0.1), tmp_path / "other")
    page = compare_report([demo.folder, other.folder], tmp_path / "both.html")
    for size in (WIDE, PHONE):
        tab = opened(page, size, "dark")
        assert tab.evaluate("document.documentElement.scrollWidth") <= size[0]
        assert "The rules agree in" in tab.locator(".rule").inner_text()
        text = tab.locator("main").inner_text()
        for word in ("Promises", "Data", "Settings that differ", "discount", "4,120"):
            assert word in text


def what_if_page():
    """Return a page with everything a what-if page may have."""
    names = ("as it is", "discount 0.9", "without the action 'a rather long name'", "prior 1")
    dots = [
        Dot(words=name, promise=9.0 + i - 80 * (i == 3), text=f"{9 + i}", limit=12.0 + i,
            certified=i != 1)
        for i, name in enumerate(names)
    ]  # fmt: skip
    return WhatIfPage(
        title="What if", subtitle="One setting changed at a time.",
        alone="Each number holds alone, not all at once.",
        head=("", "promise", "limit", "per step", "policy changes in"),
        rows=[(name, "9.0000", "12.000", "0.45000", "3 of 12 states") for name in names],
        dots=dots, axis="discounted return per step in EUR",
        limit="No deterministic policy can be promised more than the limit.",
        changes=[(name, "old, raised & <worn>", "wait", "repair") for name in names[1:]],
    )  # fmt: skip


@pytest.mark.parametrize(("size", "scheme"), [(WIDE, "light"), ((390, 800), "dark")])
def test_the_what_if_page_is_one_of_the_pages(tmp_path, opened, size, scheme):
    place = tmp_path / "what-if.html"
    place.write_text(what_if_page().to_html(), encoding="utf-8")
    assert "default-src 'none'" in html.unescape(place.read_text(encoding="utf-8"))
    tab = opened(place, size, scheme)
    assert tab.evaluate("document.documentElement.scrollWidth") <= size[0]
    assert tab.evaluate(BEYOND) == []
    style = (
        "() => { const s = getComputedStyle(document.body); return [s.backgroundColor, s.color]; }"
    )
    background, ink = tab.evaluate(style)
    assert abs(brightness(background) - brightness(ink)) > 120
    word = tab.locator("svg:visible text").first
    filled = brightness(word.evaluate("e => getComputedStyle(e).fill"))
    assert tab.locator("svg:visible").count() == 1
    assert word.evaluate("e => e.getBoundingClientRect().height") > 11  # not shrunk on a phone
    assert abs(filled - brightness(background)) > 60
    assert tab.locator("figcaption").inner_text().startswith("Dots are promises")
    assert "No deterministic policy" in tab.locator("figcaption").inner_text()
