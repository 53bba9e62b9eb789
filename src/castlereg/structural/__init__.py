"""What if: structural models, known or learned, and their answers."""

from castlereg.structural.effects import Effect, WhatIf
from castlereg.structural.fitted_world import FittedWorld
from castlereg.structural.model import StructuralModel

__all__ = ["Effect", "FittedWorld", "StructuralModel", "WhatIf"]
