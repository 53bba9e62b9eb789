"""Models in files: one safetensors file with the model's JSON and a digest in its metadata, without pickle.

``model_file`` saves and loads; ``container`` is the file; ``model_state`` takes an estimator and its ``FittedModel``
apart and puts them together again, one file per part; ``values`` writes options, kind by kind.
"""

from castlereg.persistence.json_content import ModelFileError
from castlereg.persistence.model_file import load, save

__all__ = ["ModelFileError", "load", "save"]
