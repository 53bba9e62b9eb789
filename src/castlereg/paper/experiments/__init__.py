"""Experiments that reproduce the paper's tables and figures: ``castlereg experiment NAME``."""

from castlereg.paper.experiments.description import SCALES, Experiment, Scale, Verdict
from castlereg.paper.experiments.registry import EXPERIMENTS, experiment_named
from castlereg.paper.experiments.runner import Outcome, run

__all__ = ["EXPERIMENTS", "SCALES", "Experiment", "Outcome", "Scale", "Verdict", "experiment_named", "run"]
