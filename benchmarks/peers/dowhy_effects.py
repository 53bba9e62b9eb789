"""Effects by DoWhy's graphical causal models, in a separate environment: ``pip install dowhy pyarrow``.

``python benchmarks/peers/dowhy_effects.py FOLDER OUTPUT.json`` reads the worlds that ``python -m benchmarks.effects
make FOLDER`` wrote. Mechanisms are assigned by DoWhy's own search (quality GOOD, its default).
"""

import json
import logging
import sys
import time
import warnings
from pathlib import Path

import networkx as nx
import pandas as pd
from dowhy import gcm

SAMPLES = 5000  # for each value: their mean is within a hundredth or so of its limit


def estimates(rows, edges, truth, outcome):
    """Return the curves, and the seconds of fitting and of questions."""
    names = list(rows)
    graph = nx.DiGraph()
    graph.add_nodes_from(names)
    graph.add_edges_from((a, b) for i, a in enumerate(names) for j, b in enumerate(names) if edges[i][j])
    gcm.util.general.set_random_seed(0)
    begun = time.process_time()
    model = gcm.StructuralCausalModel(graph)
    gcm.auto.assign_causal_mechanisms(model, rows)
    gcm.fit(model, rows)
    fitted, curves = time.process_time(), {}
    for cause, curve in truth.items():
        curves[cause] = [
            float(
                gcm.interventional_samples(model, {cause: lambda _, v=value: v}, num_samples_to_draw=SAMPLES)[
                    outcome
                ].mean()
            )
            for value, _ in curve
        ]
    return {"curves": curves, "fit": fitted - begun, "questions": time.process_time() - fitted}


def main():
    """Run all worlds; worlds in the output are not run again."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    gcm.config.disable_progress_bars()
    gcm.config.set_default_n_jobs(1)
    folder, output = Path(sys.argv[1]), Path(sys.argv[2])
    results = json.loads(output.read_text()) if output.exists() else {}
    for path in sorted(folder.glob("*.json")):
        if not path.with_suffix(".learned").exists():  # our run comes first
            continue
        world = json.loads(path.read_text())
        rows = pd.read_csv(path.with_suffix(".csv"))
        for column in rows:
            rows[column] = rows[column].astype(float if pd.api.types.is_numeric_dtype(rows[column]) else object)
        graphs = {"true": world["dag"], "learned": json.loads(path.with_suffix(".learned").read_text())}
        for name, edges in graphs.items():
            if f"{path.stem}/{name}" not in results:
                results[f"{path.stem}/{name}"] = estimates(rows, edges, world["truth"], world["outcome"])
                output.write_text(json.dumps(results))
                print(path.stem, name, flush=True)


if __name__ == "__main__":
    main()
