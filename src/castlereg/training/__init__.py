"""Training a stack of networks as one compiled program."""

from castlereg.training.members import Member, Schedule
from castlereg.training.stack import train
from castlereg.training.trained import TrainedStack

__all__ = ["Member", "Schedule", "TrainedStack", "train"]
