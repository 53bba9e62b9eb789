"""Models in files: one safetensors file with the model's JSON and a digest in its metadata, without pickle.

``model_file`` saves and loads; ``container`` defines the file; ``model_state`` and a module for each part convert an
estimator and its ``FittedModel`` to JSON and arrays and back; ``values`` converts options, with a rule for each kind.
"""

from castlereg.persistence.json_content import ModelFileError
from castlereg.persistence.model_file import load, save

__all__ = ["ModelFileError", "load", "save"]
