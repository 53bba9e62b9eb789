"""The whole journey of a new user: build, install into a clean environment, fit, look, predict, export."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.report.test_page_in_browser import BROWSER, CHROMEDRIVER, driver, one, opened, texts

__all__ = ["driver"]  # a fixture

ROOT = Path(__file__).parents[1]
HOSTILE = "<script>alert(1)</script>"
QUOTES = 'it\'s "odd",\nnew line 🙂'

pytestmark = pytest.mark.xdist_group("browser")


class Environment:
    """A clean virtual environment; every command must succeed unless told otherwise."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        venv.create(folder / "env", with_pip=True)
        self.bin = folder / "env" / "bin"
        self.wheel = ""

    def run(self, program: str, *arguments: str | Path, fails: bool = False, stdin: str | None = None) -> Any:
        environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "SCIPY_ARRAY_API", "XLA_FLAGS")}
        done = subprocess.run(
            [self.bin / program, *map(str, arguments)],
            capture_output=True,
            text=True,
            input=stdin,
            cwd=self.folder,
            env=environment,
            timeout=600,
            check=False,
        )
        assert (done.returncode != 0) is fails, f"{program} {arguments}: {done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def install(self, *what: str) -> None:
        self.run(
            *("python", "-m", "pip", "install", "-q", "--disable-pip-version-check"),
            *("-c", ROOT / "constraints.txt", *what),
        )


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Castlereg installed from the wheel that is built from the source distribution, without extras."""
    clean = Environment(tmp_path_factory.mktemp("journey"))
    built = clean.folder / "dist"
    subprocess.run(
        [sys.executable, "-m", "build", "-q", "--outdir", built, ROOT], check=True, capture_output=True, text=True
    )
    assert len(list(built.glob("*.tar.gz"))) == 1
    (wheel,) = built.glob("*.whl")
    clean.wheel = str(wheel)
    clean.install(clean.wheel)
    return clean


def homes() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    area = rng.normal(80, 20, 90)
    city = rng.choice(["Oslo", "Bergen", "Tromsø"], 90)
    frame = pd.DataFrame(
        {
            HOSTILE: area,
            QUOTES: city,
            "rooms": (area / 25).round(),
            "price": 3 * area + np.where(city == "Oslo", 80, 0) + rng.normal(0, 20, 90),
        }
    )
    frame.loc[::7, "rooms"] = None
    frame.loc[::11, QUOTES] = None
    return frame


def test_from_the_wheel_to_the_same_numbers_in_onnxruntime(
    environment: Environment, request: pytest.FixtureRequest
) -> None:
    folder = environment.folder
    missing = environment.run("castlereg", "--help", fails=True)
    assert 'pip install "castlereg[cli]"' in missing.stderr
    for call, extra in (("to_onnx(None, 'x')", "onnx"), ("write_report(None, None, None, 'x')", "report")):
        printed = environment.run("python", "-c", _message(f"import castlereg; castlereg.{call}")).stdout
        assert f"castlereg[{extra}]" in printed
    environment.install(f"{environment.wheel}[cli,onnx,report]", "onnxruntime")

    homes().to_csv(folder / "homes.csv", index=False)
    typo = environment.run("castlereg", "fit", "homes.csv", "--target", "prise", fails=True)
    assert "did you mean 'price'?" in typo.stderr
    fitted = environment.run(
        "castlereg", "fit", "homes.csv", "--target", "price", "--epochs", "30", "--folds", "3",
        "--output", "homes.castle", "--report", "homes.html", "--json",
    )  # fmt: skip
    assert json.loads(fitted.stdout)["task"] == "regression"

    new = homes().drop(columns="price").head(6)
    new.loc[2, QUOTES] = "Paris"  # the model has never seen it
    predicted = environment.run("castlereg", "predict", "homes.castle", "-", stdin=new.to_csv(index=False))
    by_command = pd.read_csv(io.StringIO(predicted.stdout))["price"].to_numpy()

    new.to_csv(folder / "new.csv", index=False)
    exported = environment.run(
        "python", "-c",
        "import castlereg, onnxruntime, pandas as pd, json, warnings; warnings.simplefilter('ignore')\n"
        "model = castlereg.load('homes.castle'); castlereg.to_onnx(model, 'homes.onnx')\n"
        "session = onnxruntime.InferenceSession('homes.onnx')\n"
        "rows = pd.read_csv('new.csv')\n"
        "print(json.dumps(session.run(['prediction'], castlereg.onnx_inputs(model, rows))[0].ravel().tolist()))",
    )  # fmt: skip
    np.testing.assert_allclose(json.loads(exported.stdout), by_command, rtol=1e-9)

    if not (CHROMEDRIVER and BROWSER):
        pytest.skip("needs chromium and chromedriver for the rest")
    _look(request.getfixturevalue("driver"), folder / "homes.html")


def _message(script: str) -> str:
    return f"try:\n    {script}\nexcept ImportError as error:\n    print(error)"


def _look(browser: Any, page: Path) -> None:
    """Use the page as somebody would; nothing from the table runs, nothing is asked of the network."""
    opened(browser, page)
    names = texts(browser, "#column-table tbody th .name")
    assert HOSTILE in names
    assert QUOTES in names
    edges = "return [...document.querySelectorAll('#edge-table tbody tr')].filter(r => !r.hidden).length"
    move = (
        "const s = document.querySelector('#threshold'); s.value = arguments[0]; s.dispatchEvent(new Event('input'));"
    )
    browser.execute_script(move, 0)
    every = browser.execute_script(edges)
    browser.execute_script(move, every)  # beyond the end: the strongest alone
    assert browser.execute_script(edges) == 1 < every
    near = one(browser, "#near")
    was = near.is_selected()
    near.click()
    assert near.is_selected() != was
    one(browser, "#search").send_keys("script")
    assert browser.execute_script("return document.querySelectorAll('svg:not([hidden]) .found').length") == 1
    assert browser.get_log("browser") == []
    requests = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [r["params"]["request"]["url"] for r in requests if r["method"] == "Network.requestWillBeSent"]
    assert all(url.startswith(("file:", "data:")) for url in asked), asked
