"""Training a stack of networks as one compiled program."""

from castlereg.training.stack import Member, Schedule, Table, TrainedStack, train

__all__ = ["Member", "Schedule", "Table", "TrainedStack", "train"]
