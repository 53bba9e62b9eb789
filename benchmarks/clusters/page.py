"""Write the table of figures to ``docs/speed.md``."""

from __future__ import annotations

import pandas as pd

from benchmarks.clusters.run import RESULTS
from benchmarks.marked_figures import DOCS, write_figures
from castlereg.markdown import markdown_table

NAMES = {
    "serial": "one process",
    "local": "two processes (joblib's loky)",
    "dask": "Dask, two workers",
    "ray": "Ray, two workers",
    "array": "two elements of an array",
}
BY = {"items": "`run_items`", "search": "`GridSearchCV`"}


def table(results: pd.DataFrame) -> pd.DataFrame:
    """Return means over all runs, relative to two processes on this machine."""
    keys = ["by", "way", "killed"]
    means = (
        results.groupby(keys, sort=False)[["start_seconds", "wall_seconds", "processor_seconds"]].mean().reset_index()
    )
    local = means[(means["way"] == "local") & (means["killed"] == 0)].set_index("by")
    same = results.groupby("by")["results"].transform(lambda digests: digests == digests.iloc[0])
    same = results.assign(same=same).groupby(keys, sort=False)["same"].all().to_numpy()
    ratios = {
        name: means[f"{name}_seconds"] / means["by"].map(local[f"{name}_seconds"]) for name in ("wall", "processor")
    }
    return pd.DataFrame(
        {
            "1,000 fits by": means["by"].map(BY),
            "on": means["way"].map(NAMES) + means["killed"].map({0: "", 1: ", one killed"}),
            "identical results": ["yes" if equal else "no" for equal in same],
            "seconds to start": means["start_seconds"].map("{:.0f}".format),
            "seconds": means["wall_seconds"].map("{:.0f}".format),
            "times two processes": ratios["wall"].map("{:.2f}".format),
            "processor seconds": means["processor_seconds"].map("{:.0f}".format),
            "times two processes ": ratios["processor"].map("{:.2f}".format),
        }
    )


COMMAND = "python -m benchmarks.clusters page"


def figures() -> str:
    """Return the table as Markdown."""
    return markdown_table(table(pd.read_csv(RESULTS)))


def write() -> None:
    """Write the table."""
    write_figures(DOCS / "speed.md", COMMAND, figures())
