"""Serve a saved model over HTTP with FastAPI: rows go in as JSON, predictions come out.

The model is loaded once per process. Train one, start the server, and send rows::

    castlereg demo --output demo
    MODEL=demo/diabetes.castle uvicorn --app-dir examples --factory serve:from_environment --port 8000
    tail -1 demo/diabetes.csv  # the values of a row, to be sent as [{"age": ..., "sex": ..., ...}]

A row has all columns of the model, in any order; null is a missing value. Rows that the model cannot predict are
answered with status 422 and the message of the error. Needs ``pip install fastapi uvicorn``.
"""

from __future__ import annotations

import os
from typing import Any

import pandas as pd
from fastapi import FastAPI, HTTPException

import castlereg

MOST_ROWS = 10_000  # per request


def create_app(path: str | os.PathLike[str]) -> FastAPI:
    """Load a model that was fitted on a frame with one target, and return the application."""
    model = castlereg.load(path)
    columns = list(model.feature_names_in_)
    app = FastAPI(title="castlereg", version=castlereg.__version__)

    @app.get("/health")
    def health() -> dict[str, Any]:
        """Describe the served model."""
        return {"status": "ok", "model": type(model).__name__, "columns": columns}

    @app.post("/predict")
    def predict(rows: list[dict[str, Any]]) -> dict[str, Any]:
        """Predict the rows; for classes, add the probability of each."""
        try:
            frame = frame_of(rows, columns)
            answer = {"prediction": model.predict(frame).tolist()}
            if hasattr(model, "classes_"):
                answer["classes"] = model.classes_.tolist()
                answer["probabilities"] = model.predict_proba(frame).tolist()
        except (ValueError, TypeError) as error:
            raise HTTPException(422, str(error)) from error
        return answer

    return app


def frame_of(rows: list[dict[str, Any]], columns: list[str]) -> pd.DataFrame:
    """Return rows as a frame whose columns are in the order of the model; the model checks names and values."""
    if not 0 < len(rows) <= MOST_ROWS:
        raise ValueError(f"got {len(rows)} rows; send 1 to {MOST_ROWS}")
    for i, row in enumerate(rows):
        if row.keys() != rows[0].keys():
            raise ValueError(f"row {i} has other columns than row 0; send null for a missing value")
    known = [name for name in columns if name in rows[0]]
    return pd.DataFrame(rows, columns=[*known, *(name for name in rows[0] if name not in columns)])


def from_environment() -> FastAPI:
    """Serve the file that the environment variable MODEL names."""
    return create_app(os.environ["MODEL"])
