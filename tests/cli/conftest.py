"""A messy table and two models of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.cli import done


@pytest.fixture(scope="package")
def homes() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    area = rng.normal(80, 20, 60)
    city = rng.choice(["Oslo", "Bergen", "Tromsø"], 60)
    price = 3 * area + np.where(city == "Oslo", 80, 0) + rng.normal(0, 20, 60)
    frame = pd.DataFrame({"area, m²": area, "city": city, "price": price, "sold": np.where(price > 260, "yes", "no")})
    frame.loc[::7, "city"] = None
    frame.loc[3, "price"] = None
    return frame


@pytest.fixture(scope="package")
def folder(homes: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models and what fitting them printed."""
    folder = tmp_path_factory.mktemp("homes")
    table, quick = folder / "homes.csv", ("--epochs", 2)
    homes.to_csv(table, index=False)
    (folder / "empty.csv").write_text("")
    (folder / "features.csv").write_text("area,city\n80,Oslo\n")
    of_price = ("-t", "price", "--drop", "sold", "-o", folder / "price.castle")
    fitted = done("fit", table, *of_price, "--search", "paper", "--folds", 2, "--json", *quick)
    (folder / "price.json").write_text(fitted.stdout)
    of_sold = ("-t", "sold", "--drop", "price", "-o", folder / "sold.castle")
    (folder / "sold.txt").write_text(done("fit", table, *of_sold, "--beta", 0.1, *quick).stdout)
    return folder
