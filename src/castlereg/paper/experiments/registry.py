"""All experiments by name, in the order of the paper."""

from __future__ import annotations

from typing import Final

from castlereg.options import did_you_mean
from castlereg.paper.experiments.ablation import Ablation
from castlereg.paper.experiments.dataset_table import DatasetTable
from castlereg.paper.experiments.description import Experiment
from castlereg.paper.experiments.lambda_sensitivity import LambdaSensitivity
from castlereg.paper.experiments.rank_features import RankFeatures
from castlereg.paper.experiments.rank_noise import RankNoise
from castlereg.paper.experiments.rank_rows import RankRows
from castlereg.paper.experiments.real_classification import RealClassification
from castlereg.paper.experiments.real_ranks import RealRanks
from castlereg.paper.experiments.real_regression import RealRegression
from castlereg.paper.experiments.scalability import Scalability
from castlereg.paper.experiments.toy_linear import ToyLinear
from castlereg.paper.experiments.toy_nonlinear import ToyNonlinear
from castlereg.paper.experiments.tree_models import TreeModels
from castlereg.paper.experiments.usual_start import UsualStart
from castlereg.paper.experiments.weights_with_parents import WeightsWithParents
from castlereg.paper.experiments.weights_without_parents import WeightsWithoutParents
from castlereg.paper.experiments.when_it_pays import WhenItPays

EXPERIMENTS: Final[dict[str, Experiment]] = {
    experiment.name: experiment
    for experiment in (
        ToyNonlinear(),
        RankFeatures(),
        RankRows(),
        RankNoise(),
        RealRegression(),
        RealClassification(),
        ToyLinear(),
        LambdaSensitivity(),
        Scalability(),
        RealRanks(),
        Ablation(),
        WeightsWithParents(),
        WeightsWithoutParents(),
        DatasetTable(),
        TreeModels(),
        UsualStart(),
        WhenItPays(),
    )
}


def experiment_named(name: str) -> Experiment:
    """Return an experiment by name; an unknown name raises with a suggestion."""
    if name in EXPERIMENTS:
        return EXPERIMENTS[name]
    hint = did_you_mean(name, EXPERIMENTS, cutoff=0.4) or f"; choose from {', '.join(EXPERIMENTS)}"
    raise ValueError(f"there is no experiment {name!r}{hint}")
