"""Experiments that reproduce the paper's tables and figures, by name and in the order of the paper."""

from __future__ import annotations

from typing import Final

from castlereg.options import did_you_mean
from castlereg_paper.experiments import beyond, figures, tables
from castlereg_paper.framework import SCALES, Experiment, Outcome, Scale, Verdict, run

__all__ = ["EXPERIMENTS", "SCALES", "Experiment", "Outcome", "Scale", "Verdict", "experiment_named", "run"]

EXPERIMENTS: Final[dict[str, Experiment]] = {
    experiment.name: experiment
    for experiment in (
        tables.ToyNonlinear(),
        figures.RankFeatures(),
        figures.RankRows(),
        figures.RankNoise(),
        tables.RealRegression(),
        tables.RealClassification(),
        tables.ToyLinear(),
        figures.LambdaSensitivity(),
        figures.Scalability(),
        figures.RealRanks(),
        tables.Ablation(),
        figures.WeightsWithParents(),
        figures.WeightsWithoutParents(),
        tables.DatasetTable(),
        beyond.TreeModels(),
        beyond.UsualStart(),
        beyond.WhenItPays(),
    )
}


def experiment_named(name: str) -> Experiment:
    """Return an experiment by name; an unknown name raises with a suggestion."""
    if name in EXPERIMENTS:
        return EXPERIMENTS[name]
    hint = did_you_mean(name, EXPERIMENTS, cutoff=0.4) or f"; choose from {', '.join(EXPERIMENTS)}"
    raise ValueError(f"there is no experiment {name!r}{hint}")
