"""What if: structural models, known or learned, and the questions that they answer."""

from castlereg.structural.effects import Effect, WhatIf
from castlereg.structural.fitted_world import FittedWorld
from castlereg.structural.model import StructuralModel

__all__ = ["Effect", "FittedWorld", "StructuralModel", "WhatIf"]
