"""Share of test rows inside the 90 % intervals and class sets of ``search="best"``: 20 random splits of two tables.

``python -m benchmarks.accuracy coverage`` adds to benchmarks/accuracy/coverage.csv.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from benchmarks.accuracy.cells import SOURCES
from castlereg import CastleClassifierCV, CastleRegressorCV

RESULTS = Path(__file__).with_name("coverage.csv")
TABLES = ("bioconcentration", "Pima")
SPLITS, ROWS = 20, 300


def measure(folder: Path) -> None:
    """Fit every split without a stored result."""
    warnings.simplefilter("ignore")
    rows = pd.read_csv(RESULTS).to_dict("records") if RESULTS.exists() else []
    known = {(row["table"], row["split"]) for row in rows}
    for split in range(SPLITS):
        for name in TABLES:
            if (name, split) in known:
                continue
            source = SOURCES[name]
            X, y = source.read(folder)
            train, test = train_test_split(
                np.arange(len(X)), train_size=ROWS, random_state=split, stratify=y if source.classes else None
            )
            if source.classes:
                sets = CastleClassifierCV(search="best", random_state=split).fit(X.iloc[train], y.iloc[train])
                kept = np.asarray(sets.predict_set(X.iloc[test]))
                truth = np.searchsorted(sets.classes_, y.iloc[test])
                inside, size = kept[np.arange(len(test)), truth], kept.sum(axis=1).mean()
            else:
                model = CastleRegressorCV(search="best", random_state=split).fit(X.iloc[train], y.iloc[train])
                lower, upper = model.predict_interval(X.iloc[test]).T
                inside = ((lower <= y.iloc[test]) & (y.iloc[test] <= upper)).to_numpy()
                size = float((upper - lower).mean() / y.std(ddof=0))
            rows.append({"table": name, "split": split, "inside": inside.mean(), "size": size})
            print(rows[-1], flush=True)
            pd.DataFrame(rows).to_csv(RESULTS, index=False, float_format="%.4g")
