"""Training a stack of networks as one program, phase by phase."""

from castlereg.training.callbacks import Callback, Control, Epoch, OnInterrupt, TimeLimit, check_callbacks, watched
from castlereg.training.loop import TrainedStack, train
from castlereg.training.state import Member, Phase, Plan, phases_for

__all__ = [
    "Callback",
    "Control",
    "Epoch",
    "Member",
    "OnInterrupt",
    "Phase",
    "Plan",
    "TimeLimit",
    "TrainedStack",
    "check_callbacks",
    "phases_for",
    "train",
    "watched",
]
