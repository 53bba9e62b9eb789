"""Training a stack of networks as one compiled program, phase by phase."""

from castlereg.table.table import Table
from castlereg.training.loop import TrainedStack, train
from castlereg.training.plan import Member, Phase, Plan, phases_for

__all__ = ["Member", "Phase", "Plan", "Table", "TrainedStack", "phases_for", "train"]
