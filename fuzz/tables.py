"""Unusual tables: fit, predict, save, load and ONNX, and text and Parquet files."""

from __future__ import annotations

import re
import warnings
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

import castlereg
from castlereg.table.files import TableFile
from fuzz.odd_tables import Problem, problem
from fuzz.verdict import Counts, Finding, check_clear, expect, is_of_sklearn, strict_warnings

_OPTIONS = (
    "categorical_features",
    "sample_weight",
    "class_weight",
    "objective",
    "batch_size",
    "cv=",
    "n_splits",
    "hidden_layer_sizes",
)


def check(seed: int, folder: Path) -> Counts:
    """Fit a table and check the model, or check that the error message states the problem."""
    rng = np.random.default_rng([3, seed])
    given = problem(seed)
    draw = rng.random()
    with strict_warnings():
        if draw < 0.1 and given.frame is not None:
            through_file(given, folder, rng)
        weight = {} if given.weight is None else {"sample_weight": given.weight}
        try:
            given.estimator.fit(given.X, given.y, **weight)
        except Exception as error:
            check_clear(error, (ValueError, TypeError, FloatingPointError), target_names(given))
            if not is_of_sklearn(error):
                check_names(str(error), given)
            return {"tables": 1, "rejected": 1}
        check_model(given, folder, rng)
        if draw > 0.95:
            again = clone(given.estimator).fit(given.X, given.y, **weight)
            same(again.predict(given.X), given.estimator.predict(given.X), "a second fit with the same seed")
        elif draw > 0.9 and isinstance(given.X, pd.DataFrame):
            check_order(given, rng)
    return {"tables": 1, "fitted": 1}


def check_order(given: Problem, rng: np.random.Generator) -> None:
    """Fit the rows and columns in another order with the same seed: the predictions must be identical."""
    rows, columns = rng.permutation(len(given.X)), rng.permutation(given.X.shape[1])
    X = given.X.iloc[:, columns]
    weight = {} if given.weight is None else {"sample_weight": np.asarray(given.weight, np.float64)[rows]}
    y = given.y.iloc[rows] if hasattr(given.y, "iloc") else np.asarray(given.y)[rows]
    try:
        shuffled = X.iloc[rows]
    except ValueError:  # pandas does not take rows of numbers in the other byte order
        return
    model = clone(given.estimator)
    if model.categorical_features is not None:
        model.categorical_features = [int(np.argsort(columns)[j]) for j in model.categorical_features]
    model.fit(shuffled, y, **weight)
    same(model.predict(X), given.estimator.predict(given.X), "a fit in another order of rows and columns")


def target_names(given: Problem) -> list[str]:
    """Return the names of the targets, if they have names."""
    return [str(name) for name in getattr(given.y, "columns", [getattr(given.y, "name", None)]) if name is not None]


def check_names(message: str, given: Problem) -> None:
    """Raise a finding unless a message names the column, the target, the table or the option that is wrong."""
    named = any(repr(name) in message or f"'{name}'" in message for name in given.names)
    named |= any(message.startswith(str(name)) for name in target_names(given))
    about = re.search(r"\b(X|y)\b|sample\(s\)|row|target|class", message) or any(o in message for o in _OPTIONS)
    expect(named or about, f"the message names no column and no option: {message}")


def check_model(given: Problem, folder: Path, rng: np.random.Generator) -> None:
    """Check all guarantees of a fitted model."""
    model, X = given.estimator, given.X
    predicted = model.predict(X)
    n = len(predicted)
    expect(n == X.shape[0] if hasattr(X, "shape") else n == len(X), f"{n} predictions for another number of rows")
    finite(predicted, "predictions")
    if hasattr(model, "predict_proba"):
        probabilities = model.predict_proba(X)
        tables = list(probabilities.values()) if isinstance(probabilities, dict) else [probabilities]
        for table in tables:
            finite(table, "probabilities")
            expect(np.allclose(np.asarray(table).sum(axis=-1), 1), "probabilities do not add up to one")
    if hasattr(model, "graph_"):
        check_graph(model.graph_)
    one = int(rng.integers(n))
    row = X[one : one + 1] if not isinstance(X, pd.DataFrame) else X.iloc[one : one + 1]
    same(model.predict(row), _rows(predicted, one), f"row {one} alone")
    path = folder / "model.castle"
    castlereg.save(model, path)
    loaded = castlereg.load(path)
    same(loaded.predict(X), predicted, "the loaded model")
    if rng.random() < 0.5:
        check_onnx(model, X, predicted, folder)
    if rng.random() < 0.3 and isinstance(X, pd.DataFrame):
        check_changed_rows(model, X, rng)


def _rows(predicted: Any, row: int) -> Any:
    return predicted.iloc[row : row + 1] if isinstance(predicted, pd.DataFrame) else predicted[row : row + 1]


def finite(values: Any, what: str) -> None:
    """Raise a finding if numbers are not finite."""
    for column in values.items() if isinstance(values, pd.DataFrame) else [("", values)]:
        array = np.asarray(column[1])
        expect(array.dtype.kind != "f" or np.isfinite(array).all(), f"{what} are not finite {column[0]}")


def same(values: Any, expected: Any, what: str) -> None:
    """Raise a finding unless predictions are identical."""
    if isinstance(expected, pd.DataFrame):
        for name in expected:
            same(values[name].to_numpy(), expected[name].to_numpy(), f"{what}, target {name!r}")
        return
    equal = np.array_equal(np.asarray(values), np.asarray(expected))
    expect(equal, f"{what} predicts otherwise: {_first(values)} and {_first(expected)}")


def _first(values: Any) -> str:
    return str(np.asarray(values).ravel()[:3].tolist())


def check_graph(graph: castlereg.CausalGraph) -> None:
    """Check that a graph has no cycle and can be written in every format."""
    expect(graph.is_dag, "the graph has a cycle")
    expect(np.isfinite(np.asarray(graph.weights, float)).all(), "weights of the graph are not finite")
    graph.to_json()
    graph.to_dot()
    graph.to_gml()
    try:
        ET.fromstring(graph.to_svg())
    except ET.ParseError as error:
        raise Finding(f"the SVG is not XML: {error}") from error


def check_onnx(model: Any, X: Any, predicted: Any, folder: Path) -> None:
    """Compare with onnxruntime, or check the error."""
    import onnxruntime

    try:
        castlereg.to_onnx(model, folder / "model.onnx")
        inputs = castlereg.onnx_inputs(model, X)
    except Exception as error:
        check_clear(error)
        return
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(folder / "model.onnx", options, providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        outputs = dict(zip(names, session.run(names, inputs), strict=True))
    except Exception as error:
        raise Finding(f"onnxruntime does not run the export: {error}") from error
    if not isinstance(predicted, pd.DataFrame):
        _close(outputs["prediction"], predicted, model, X, "prediction")
        return
    if "prediction" in outputs:
        _close(outputs["prediction"], predicted.to_numpy(), model, X, "prediction")
        return
    for name in predicted:
        _close(outputs[f"prediction_{name}"], predicted[name].to_numpy(), model, X, f"prediction_{name}")


def _close(values: Any, expected: Any, model: Any, X: Any, what: str) -> None:
    expect(values.shape == expected.shape, f"ONNX {what} has shape {values.shape} and not {expected.shape}")
    if expected.dtype.kind == "f":
        scale = float(np.abs(expected).max(initial=0.0))
        expect(
            np.allclose(values, expected, rtol=1e-6, atol=1e-6 * scale),
            f"ONNX {what}: {_first(values)}, {_first(expected)}",
        )
    elif not np.array_equal(values, expected):
        # Two classes that are equally probable may change places by rounding.
        shares = model.predict_proba(X)
        expect(not isinstance(shares, dict), f"ONNX {what}: {_first(values)}, {_first(expected)}")
        ordered = np.sort(np.asarray(shares), axis=1)
        clear = ordered[:, -1] - ordered[:, -2] > 1e-6
        expect(np.array_equal(values[clear], expected[clear]), f"ONNX {what}: {_first(values)}, {_first(expected)}")


def check_changed_rows(model: Any, X: pd.DataFrame, rng: np.random.Generator) -> None:
    """Predict from rows unlike those in training: predictions are finite, or the error is clear."""
    try:
        changed = X.iloc[rng.permutation(len(X))[: 1 + rng.integers(5)]].copy()
    except ValueError:  # pandas does not take rows of numbers in the other byte order
        return
    j = int(rng.integers(X.shape[1]))
    values: list[Any] = [
        None,
        np.nan,
        "new",
        1e38,
        1e300,
        np.inf,
        pd.NaT,
        pd.Timestamp("2050-01-01"),
        -1,
        True,
        [1],
        "",
        b"x",
    ]
    column = pd.Series([values[int(rng.integers(len(values)))]] * len(changed), index=changed.index)
    names = list(changed.columns)
    changed = pd.concat([changed.iloc[:, :j], column, changed.iloc[:, j + 1 :]], axis=1)
    changed.columns = pd.Index(names, dtype=object, tupleize_cols=False)
    if rng.random() < 0.1:
        changed = changed.iloc[:, ::-1]
    try:
        predicted = model.predict(changed)
    except Exception as error:
        check_clear(error)
        return
    finite(predicted, "predictions of changed rows")
    expect(len(predicted) == len(changed), "another number of predictions")


def through_file(given: Problem, folder: Path, rng: np.random.Generator) -> None:
    """Write the table as text or Parquet, read it again, and sometimes fit it in pieces."""
    frame = given.frame
    assert frame is not None
    path = folder / f"table.{rng.choice(['csv', 'parquet', 'tsv'])}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if path.suffix == ".parquet":
                frame.rename(columns=str).to_parquet(path, index=False)
            else:
                frame.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    except Exception:  # the writer's limits, not ours
        return
    try:
        file = TableFile.open(path)
        columns, read = file.columns(), file.read()
        pieces = list(file.frames(columns, 7))
    except Exception as error:
        check_clear(error, (ValueError, OSError))
        return
    if len(columns) == 1 and not given.names[0].strip():
        return  # a header of blanks is a blank line
    expect(len(read) == len(frame), f"{len(read)} rows were read of {len(frame)}")
    expect(list(read.columns) == columns, "columns differ from those that were announced")
    expect(sum(map(len, pieces)) == len(read), "the pieces have another number of rows")
    if rng.random() < 0.3 and hasattr(given.estimator, "fit_file") and len(columns) > 1:
        model = clone(given.estimator).set_params(n_members=1, bootstrap=False, categorical_features=None)
        try:
            model.fit_file(path, columns[-1], columns=columns[:-1])
        except Exception as error:
            check_clear(error, (ValueError, TypeError, FloatingPointError))
            return
        finite(model.predict(read[columns[:-1]]), "predictions of a fit in pieces")
