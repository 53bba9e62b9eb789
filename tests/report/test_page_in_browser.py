"""The page in a real browser: controls, keyboard, colours, and names that would like to be code."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from castlereg.report import ReportContent, render
from castlereg.report.page import _effect_chart
from castlereg.report.what_if import WhatIfContent

from .handmade import HOSTILE, handmade

CHROMEDRIVER = shutil.which("chromedriver")
BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.skipif(not (CHROMEDRIVER and BROWSER), reason="needs chromium and chromedriver"),
    pytest.mark.xdist_group("browser"),
]
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--window-size=1280,900",
)


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for option in (*OPTIONS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(CHROMEDRIVER))
    # The window of a headless browser may have no focus, and then no event of focus is sent.
    driver.execute_cdp_cmd("Emulation.setFocusEmulationEnabled", {"enabled": True})
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def small() -> ReportContent:
    return handmade((*(f"column {k}" for k in range(11)), "target"), n_edges=20)


@pytest.fixture(scope="module")
def pages(small: ReportContent, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    contents = {
        "small": small,
        "hostile": handmade(HOSTILE),
        "large": handmade((*(f"a column with a long name {k}" for k in range(100)), "target"), n_edges=300),
    }
    for name, content in contents.items():
        (folder / f"{name}.html").write_text(render(content), encoding="utf-8", newline="\n")
    return {name: folder / f"{name}.html" for name in contents}


@pytest.fixture
def small_page(driver: Any, pages: dict[str, Path]) -> Any:
    return opened(driver, pages["small"])


def opened(driver: Any, path: Path) -> Any:
    """Open a page at the usual size, in a system that prefers light, with logs empty."""
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    prefer(driver, "light")
    driver.get("about:blank")
    driver.get_log("browser")
    driver.get_log("performance")
    driver.get(path.as_uri())
    return driver


def prefer(driver: Any, scheme: str) -> None:
    features = [
        {"name": "prefers-color-scheme", "value": scheme},
        {"name": "prefers-reduced-motion", "value": "reduce"},  # no click while the page still scrolls
    ]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def one(driver: Any, selector: str) -> Any:
    return driver.find_element("css selector", selector)


def texts(driver: Any, selector: str) -> list[str]:
    """Texts of the elements that can be seen."""
    found = driver.execute_script(
        "return [...document.querySelectorAll(arguments[0])]"
        ".filter(e => e.getBoundingClientRect().width > 0).map(e => e.textContent)",
        selector,
    )
    assert isinstance(found, list)
    return found


def keys(*pressed: str) -> str:
    from selenium.webdriver.common.keys import Keys

    return "".join(getattr(Keys, key) if len(key) > 1 else key for key in pressed)


def press(driver: Any, *pressed: str) -> None:
    driver.switch_to.active_element.send_keys(keys(*pressed))


def wait_for(condition: Callable[[], bool]) -> None:
    from selenium.webdriver.support.wait import WebDriverWait

    WebDriverWait(None, 5).until(lambda _: condition())  # type: ignore[type-var]


def background(driver: Any) -> int:
    """Brightness of the page's paper, of 255."""
    color = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
    return max(int(part) for part in color[color.index("(") + 1 : -1].split(",")[:3])


def test_hostile_names_are_shown_and_do_not_run(driver: Any, pages: dict[str, Path]) -> None:
    opened(driver, pages["hostile"])
    assert driver.title == " ".join(f"What predicts {HOSTILE[-1]}".split())
    names = texts(driver, "#column-table tbody th .name")
    assert names == list(HOSTILE)
    for index in range(len(HOSTILE)):
        driver.execute_script(
            "document.querySelector(`svg:not([hidden]) [data-node='${arguments[0]}']`).focus()", index
        )
        assert one(driver, "#details").get_property("textContent").startswith(f"\u2068{HOSTILE[index]}\u2069")
    one(driver, "#search").send_keys("onerror")
    assert driver.execute_script("return document.querySelectorAll('svg:not([hidden]) .found').length") == 1
    assert "broken" not in driver.title
    assert driver.execute_script("return document.querySelectorAll('img, script:not([id])').length") == 1
    assert driver.get_log("browser") == []


def test_the_page_asks_for_nothing_and_says_nothing_to_the_console(driver: Any, pages: dict[str, Path]) -> None:
    for path in pages.values():
        opened(driver, path)
        one(driver, "#near").click()
        one(driver, "#theme").click()
        one(driver, "#value-0").send_keys(keys("ARROW_RIGHT"))
        choose(driver, "#what-column", 1)
        messages = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
        asked = {m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"}
        assert asked == {path.as_uri()}
        assert driver.get_log("browser") == []
        driver.execute_script("localStorage.clear()")


def test_the_policy_stops_a_script_and_a_picture_from_elsewhere(small_page: Any) -> None:
    small_page.execute_script(
        "const s = document.createElement('script'); s.textContent = 'document.title = `broken`';"
        "document.body.append(s); const i = new Image(); i.src = 'http://127.0.0.1:9/x.png'; document.body.append(i);"
    )
    assert small_page.title != "broken"
    said = " ".join(entry["message"] for entry in small_page.get_log("browser"))
    assert said.count("Content Security Policy") >= 2


def test_the_slider_hides_weak_edges_in_picture_and_table(small_page: Any, small: ReportContent) -> None:
    assert small.graph is not None
    n = small.graph.n_edges
    assert len(texts(small_page, "#edge-table tbody tr")) == len(texts(small_page, "svg .edge")) == n
    slider = one(small_page, "#threshold")
    slider.send_keys(keys(*["ARROW_RIGHT"] * 5))
    assert len(texts(small_page, "#edge-table tbody tr")) == len(texts(small_page, "svg .edge")) == n - 5
    weakest = f"{small.graph.edges[n - 6].weight:.3g}"
    assert one(small_page, "#least").text.startswith(weakest)
    assert slider.get_attribute("aria-valuetext").endswith(f"{n - 5} of {n} edges")
    slider.send_keys(keys("END"))
    strongest = small.graph.edges[0]
    assert texts(small_page, "#edge-table tbody tr td:first-child .name") == [strongest.cause]
    loose = small_page.execute_script("return document.querySelectorAll('[data-view=all] .node:not(.loose)').length")
    assert loose == 2


def choose(driver: Any, selector: str, index: int) -> None:
    from selenium.webdriver.support.select import Select

    Select(one(driver, selector)).select_by_index(index)


def panel_of(content: ReportContent) -> WhatIfContent:
    assert content.what_if is not None
    return content.what_if


def test_the_what_if_slider_moves_the_marks_and_the_answer(small_page: Any, small: ReportContent) -> None:
    column = panel_of(small).columns[0]
    slider = one(small_page, "#value-0")
    slider.send_keys(keys("HOME"))
    for k in range(3):
        expected = column.curves[0].answers(k)
        assert [one(small_page, f"#answer-{kind}").text for kind in expected._fields] == list(expected)
        assert one(small_page, "#value-text-0").text == slider.get_attribute("aria-valuetext") == column.values[k]
        assert texts(small_page, "#what-value") == [column.values[k]]
        chart = _effect_chart(column, column.curves[0], panel_of(small).outcomes[0])
        moved = one(small_page, ".pictures figure:not([hidden]) .cursor").get_attribute("transform")
        assert moved == f"translate({chart.x(column.positions[k]):g} 0)"
        slider.send_keys(keys("ARROW_RIGHT"))
    assert len(texts(small_page, ".pictures figure")) == 1


def test_the_what_if_panel_has_choices_of_column_level_and_class(small_page: Any, small: ReportContent) -> None:
    _, levels, unknown = panel_of(small).columns
    choose(small_page, "#what-column", 1)
    assert len(texts(small_page, ".pictures figure")) == 1 and not one(small_page, "#value-0").is_displayed()
    choose(small_page, "#value-1", 4)
    assert one(small_page, "#answer-caused").text == levels.curves[0].answers(4).caused
    row = _effect_chart(levels, levels.curves[0], panel_of(small).outcomes[0]).y(4.0)
    assert row is not None
    assert float(one(small_page, ".pictures figure:not([hidden]) .row").get_attribute("y")) == pytest.approx(row - 20)
    choose(small_page, "#what-outcome", 1)
    assert one(small_page, "#answer-caused").text == levels.curves[1].answers(4).caused
    assert not one(small_page, "#answers .distribution").is_displayed()  # a probability has none
    assert len(texts(small_page, "#what-if tbody")) == 1
    one(small_page, "#what-if tbody:not([hidden]) [data-choose='2']").click()
    assert one(small_page, "#what-column").get_property("value") == "2"
    assert one(small_page, "#answer-caused").text == "not known"
    remark = unknown.curves[1].effect.direction.remark("column 2", "column 0")
    assert texts(small_page, ".pictures .warning") == [remark]
    choose(small_page, "#what-outcome", 0)
    assert one(small_page, "#answers .distribution").is_displayed()


def test_without_scripts_the_what_if_panel_has_pictures_and_a_table(driver: Any, pages: dict[str, Path]) -> None:
    opened(driver, pages["small"])
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        driver.get(pages["small"].as_uri())
        visible = [figure for figure in driver.find_elements("css selector", ".pictures svg") if figure.is_displayed()]
        assert len(visible) == 3
        assert not one(driver, "#what-column").is_displayed() and one(driver, "#what-if table").is_displayed()
    finally:
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_hostile_levels_are_chosen_and_shown(driver: Any, pages: dict[str, Path]) -> None:
    opened(driver, pages["hostile"])
    choose(driver, "#what-column", 1)
    for index, name in enumerate(HOSTILE):
        choose(driver, "#value-1", index)
        assert one(driver, "#what-value").get_property("textContent") == name
    assert "broken" not in driver.title and driver.get_log("browser") == []


def test_search_marks_nodes_and_enter_goes_to_the_first(small_page: Any) -> None:
    search = one(small_page, "#search")
    search.send_keys("COLUMN 1")
    found = small_page.execute_script(
        "return [...document.querySelectorAll('[data-view=all] .found text')].map(n => n.textContent)"
    )
    assert sorted(found) == ["column 1", "column 10"]
    assert "2 nodes found" in one(small_page, "#status").text
    search.send_keys(keys("ENTER"))
    assert "found" in small_page.switch_to.active_element.get_attribute("class")
    assert one(small_page, "#details").text.startswith("\u2068column 1")


def test_the_neighbourhood_can_be_had_alone(small_page: Any, small: ReportContent) -> None:
    assert small.graph is not None
    near = small.graph.views[1]
    one(small_page, "#near").send_keys(" ")
    assert len(texts(small_page, "svg.graph .node")) == len(near.nodes)
    one(small_page, "#near").click()
    assert len(texts(small_page, "svg.graph .node")) == 12


def test_a_large_graph_begins_with_the_neighbourhood_in_letters_that_can_be_read(
    driver: Any, pages: dict[str, Path]
) -> None:
    opened(driver, pages["large"])
    assert one(driver, "#near").is_selected()
    assert len(texts(driver, "svg.graph .node")) <= 30
    assert len(texts(driver, "#edge-table tbody tr")) < 300
    scale = (
        "const s = document.querySelector('svg.graph:not([hidden])'); return s.clientWidth / s.viewBox.baseVal.width"
    )
    assert driver.execute_script(scale) >= 1.19
    assert target_is_in_sight(driver)
    one(driver, "#near").click()
    assert target_is_in_sight(driver)
    assert len(texts(driver, "svg.graph .node")) > 30
    one(driver, "#fit").click()
    assert driver.execute_script(
        "const c = document.getElementById('canvas'); return c.scrollWidth <= c.clientWidth + 1"
    )
    before = driver.execute_script(scale)
    one(driver, "#larger").click()
    assert driver.execute_script(scale) == pytest.approx(1.25 * before, rel=0.02)


def test_the_button_wins_over_the_system_is_remembered_and_print_is_light(small_page: Any) -> None:
    assert background(small_page) > 240
    prefer(small_page, "dark")
    assert background(small_page) < 40
    theme = one(small_page, "#theme")
    wait_for(lambda: theme.get_attribute("aria-pressed") == "true")  # the page learns it from an event
    theme.click()
    assert background(small_page) > 240
    assert theme.get_attribute("aria-pressed") == "false"
    small_page.refresh()
    assert background(small_page) > 240
    one(small_page, "#theme").click()
    small_page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert background(small_page) == 255
    small_page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    small_page.execute_script("localStorage.clear()")


def test_tables_sort_by_click_and_by_keyboard(small_page: Any, small: ReportContent) -> None:
    assert small.graph is not None
    by_cause, by_weight = (one(small_page, f"#edge-table th:nth-child({k}) button") for k in (1, 3))
    by_cause.click()
    causes = texts(small_page, "#edge-table tbody td:first-child .name")
    assert causes == sorted(causes, key=lambda name: (len(name), name) if name != "target" else (99, name))
    assert one(small_page, "#edge-table th:nth-child(1)").get_attribute("aria-sort") == "ascending"
    by_weight.send_keys(keys("ENTER"))
    by_weight.send_keys(keys("ENTER"))
    weights = [float(text) for text in texts(small_page, "#edge-table tbody td:nth-child(3)")]
    assert weights == sorted(weights) and len(weights) == small.graph.n_edges
    heads = texts(small_page, "#edge-table th[aria-sort]")
    assert heads == ["Weight"]
    one(small_page, "#edge-table th:nth-child(5) button").click()
    shares = texts(small_page, "#edge-table tbody td:nth-child(5)")
    known = [text for text in shares if not text.startswith("\N{EN DASH}")]
    assert shares[: len(known)] == known


def test_the_graph_is_one_stop_of_the_tab_key_and_arrows_walk_in_it(small_page: Any, small: ReportContent) -> None:
    assert small.graph is not None
    one(small_page, "#larger").send_keys(keys("TAB"))
    first = small_page.switch_to.active_element
    assert "node" in first.get_attribute("class")
    press(small_page, "ARROW_RIGHT")
    second = small_page.switch_to.active_element
    assert second != first and "node" in second.get_attribute("class")
    press(small_page, "ARROW_DOWN")
    strongest = small.graph.edges[0]
    details = one(small_page, "#details").text
    assert details.startswith(f"\u2068{strongest.cause}\u2069 → \u2068{strongest.effect}\u2069")
    assert f"weight {strongest.weight:.3g}" in details and f"confidence {100 * strongest.confidence:.0f}%" in details
    press(small_page, "TAB")
    assert small_page.switch_to.active_element.find_elements("xpath", "ancestor::*[@id='canvas']") == []


def test_pointing_at_a_node_shows_its_edges(small_page: Any, small: ReportContent) -> None:
    from selenium.webdriver import ActionChains

    assert small.graph is not None
    node = one(small_page, "svg.graph:not([hidden]) .node.target")
    ActionChains(small_page).move_to_element(node).perform()
    details = one(small_page, "#details").text
    assert details.startswith("\u2068target\u2069 (target)\ncauses: ")
    for edge in small.graph.edges:
        assert (f"{edge.cause}\u2069 (" in details) or edge.effect != "target"


def target_is_in_sight(driver: Any) -> bool:
    return bool(
        driver.execute_script(
            "const [c, t] = ['#canvas', 'svg.graph:not([hidden]) .target']"
            ".map((s) => document.querySelector(s).getBoundingClientRect());"
            "return t.left >= c.left && t.right <= c.right && t.top >= c.top && t.bottom <= c.bottom"
        )
    )


def test_every_edge_is_drawn_or_its_absence_explained(driver: Any, pages: dict[str, Path]) -> None:
    opened(driver, pages["large"])
    numbers = [int(word) for word in one(driver, "#status").text.replace(";", "").split() if word.isdigit()]
    drawn, total, *rest = numbers
    assert drawn == len(texts(driver, "svg.graph .edge")) and total == 300
    assert drawn + sum(rest) == total
    one(driver, "#near").click()
    status = one(driver, "#status").text
    assert re.fullmatch(r"(\d+) of 300 edges drawn(; \d+ hidden by the slider)?(; \d+ too weak for this page)?", status)
    listed = len(texts(driver, "#edge-table tbody tr"))
    assert status.startswith(f"{listed} of 300") and len(texts(driver, "svg.graph .edge")) == listed


def test_the_first_tab_stop_skips_to_the_content(small_page: Any) -> None:
    one(small_page, "body").send_keys(keys("TAB"))
    assert small_page.switch_to.active_element.text == "Skip to the content"
    press(small_page, "ENTER")
    assert small_page.switch_to.active_element.get_attribute("id") == "main"


@pytest.mark.parametrize("name", ["small", "hostile", "large"])
def test_a_phone_scrolls_no_page_sideways(driver: Any, pages: dict[str, Path], name: str) -> None:
    phone = {"width": 375, "height": 812, "deviceScaleFactor": 2, "mobile": True}
    opened(driver, pages[name])
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    driver.get(pages[name].as_uri())
    assert driver.execute_script("return [document.documentElement.scrollWidth, innerWidth]") == [375, 375]
    assert target_is_in_sight(driver)
    one(driver, "#larger").click()
    one(driver, "#centre").click()
    assert target_is_in_sight(driver)
    small = (
        "return [...document.querySelectorAll('.control, .field.check, input:not([type=checkbox]), .field select')]"
        ".filter(e => 0 < e.getBoundingClientRect().height && e.getBoundingClientRect().height < 44).length"
    )
    assert driver.execute_script(small) == 0


def test_print_has_no_controls_and_cuts_no_table(small_page: Any) -> None:
    small_page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert texts(small_page, ".controls, #theme, .sections, #details") == []
        cut = (
            "return [...document.querySelectorAll('.scroll, .canvas')]"
            ".filter(e => getComputedStyle(e).overflowY !== 'visible').length"
        )
        assert small_page.execute_script(cut) == 0
        assert background(small_page) == 255
    finally:
        small_page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
