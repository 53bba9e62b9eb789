"""What if: structural models, known or learned, and their answers."""

from castlereg.causal.structural.effects import Effect, WhatIf
from castlereg.causal.structural.fitted_world import FittedWorld
from castlereg.causal.structural.model import StructuralModel

__all__ = ["Effect", "FittedWorld", "StructuralModel", "WhatIf"]
