"""Seconds of DoWhy on the question of benchmarks/effects/speed.py: ``python dowhy_speed.py FOLDER``."""

import sys
import time
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
from dowhy import gcm

folder = Path(sys.argv[1])
rows = pd.read_csv(folder / "speed_rows.csv")
edges = pd.read_csv(folder / "speed_edges.csv")
cause, outcome = pd.read_csv(folder / "speed_question.csv").iloc[0]
graph = nx.DiGraph()
graph.add_nodes_from(rows.columns)
graph.add_edges_from(edges.itertuples(index=False, name=None))
gcm.config.disable_progress_bars()
begun = time.perf_counter()
model = gcm.InvertibleStructuralCausalModel(graph)
gcm.auto.assign_causal_mechanisms(model, rows)
gcm.fit(model, rows)
fitted = time.perf_counter()
for value in np.linspace(-1, 1, 20):
    gcm.interventional_samples(model, {cause: lambda _, v=value: v}, num_samples_to_draw=10_000)[outcome].mean()
asked = time.perf_counter()
gcm.counterfactual_samples(model, {cause: lambda _: 0.5}, observed_data=rows)
done = time.perf_counter()
print(f"DoWhy,0,{fitted - begun:.3g},{asked - fitted:.3g},{done - asked:.3g},")
