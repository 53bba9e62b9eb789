"""Models in files: one zip of safetensors and JSON, without pickle.

``model_file`` saves and loads; ``archive`` is the zip and its digests; ``model_state`` says what a fitted estimator is
made of, part by part; ``values`` how options are written, kind by kind.
"""

from castlereg.persistence.model_file import load, save
from castlereg.persistence.refusal import ModelFileError

__all__ = ["ModelFileError", "load", "save"]
