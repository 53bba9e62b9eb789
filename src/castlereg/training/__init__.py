"""Training a stack of networks as one compiled program, phase by phase."""

from castlereg.data.table import Table
from castlereg.training.loop import train
from castlereg.training.plan import Member, Phase, Plan, phases_for
from castlereg.training.trained import TrainedStack

__all__ = ["Member", "Phase", "Plan", "Table", "TrainedStack", "phases_for", "train"]
