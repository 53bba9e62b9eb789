"""Export of a fitted model to ONNX: encoding, networks and decoding of their outputs, all in float64.

The encoding is that of :class:`castlereg.table.preprocessing.Preprocessing`; the inputs and outputs of each network are
those of :class:`castlereg.fitted.Networks`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import partialmethod, reduce
from itertools import groupby
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from castlereg.atomic_write import atomic_write
from castlereg.estimators.base import NetworkEstimator, read_features
from castlereg.fitted import Blend, FittedModel, Networks
from castlereg.network import Embedding, Parameters
from castlereg.table.coding import values_of_levels
from castlereg.table.preprocessing import Channel, Preprocessing
from castlereg.table.reading import ColumnType
from castlereg.table.schema import OTHER, ColumnSchema
from castlereg.table.table import smooth_clip
from castlereg.table.targets import NumericTarget, Target
from castlereg.target_losses import Quantiles

if TYPE_CHECKING:
    import onnx

_OPSET, _IR = 19, 9  # the first version that compares texts, and the matching file version
_FLOAT, _DOUBLE = 1, 11  # constants of onnx.TensorProto
_ROWS = "rows"
_UNKNOWN_TEXT = "(not known)"  # for a text that would be read as a missing value


def to_onnx(model: Any, path: str | os.PathLike[str]) -> None:
    """Write the predictor of a fitted model as an ONNX file.

    The file has one input per column, with the name of the column and shape (rows, 1): text for columns of text, and
    float64 for all others, including booleans. Dates are days since 1970, durations are days. A missing number is NaN,
    and a missing text is empty; :func:`onnx_inputs` converts a frame to these inputs.

    The output ``prediction`` is the result of ``predict``: values, or labels as text, int64, float64 or booleans.
    Classifiers also have ``probabilities``, as in ``predict_proba``, and targets with quantiles have ``quantiles``, as
    in ``predict_quantiles``. With several targets, at least one of them with classes, every target has its own outputs,
    ``prediction_<target>`` and ``probabilities_<target>``.

    Needs ``castlereg[onnx]``.

    Parameters
    ----------
    model : estimator
        Any fitted estimator of castlereg.
    path : str or path
        Output file, usually with the suffix ``.onnx``.

    Examples
    --------
    >>> import tempfile
    >>> import onnxruntime
    >>> from sklearn.datasets import load_diabetes
    >>> import castlereg
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = castlereg.CastleRegressor(max_epochs=20, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     castlereg.to_onnx(model, f"{folder}/diabetes.onnx")
    ...     session = onnxruntime.InferenceSession(f"{folder}/diabetes.onnx")
    >>> (prediction,) = session.run(None, castlereg.onnx_inputs(model, X))
    >>> bool(np.allclose(prediction, model.predict(X), rtol=1e-12))
    True
    """
    try:
        import onnx
    except ImportError:
        raise ImportError("to_onnx needs the package onnx: pip install 'castlereg[onnx]'") from None
    from castlereg import __version__

    fitted = _exportable(model)
    schema, targets = fitted.preprocessing.schema, fitted.targets
    names = _output_names(targets)
    taken = {name for of_target in names for name in of_target}
    for column in schema:
        if not column.name or column.name in taken:
            outputs = ", ".join(sorted(taken))
            raise ValueError(f"column {column.name!r} has no name or that of an ONNX output ({outputs}): rename it")
    graph = _Graph(taken | {column.name for column in schema})
    results = _results(graph, targets, _predictions(graph, fitted.predictor), names)
    text, number = onnx.TensorProto.STRING, onnx.TensorProto.DOUBLE
    inputs = [
        onnx.helper.make_tensor_value_info(column.name, text if _is_text(column) else number, [_ROWS, 1])
        for column in schema
    ]
    made = onnx.helper.make_model(
        onnx.helper.make_graph(graph.nodes, type(model).__name__, inputs, results, graph.constants),
        opset_imports=[onnx.helper.make_opsetid("", _OPSET)],
        ir_version=_IR,
        producer_name="castlereg",
        producer_version=__version__,
    )
    properties = {
        "castlereg": __version__,
        "estimator": type(model).__name__,
        "targets": json.dumps([target.name for target in targets]),
        "missing_text": json.dumps({column.name: _missing_text(column) for column in schema if _is_text(column)}),
    }
    onnx.helper.set_model_props(made, properties)
    onnx.checker.check_model(made, full_check=True)
    with atomic_write(Path(path)) as file:
        file.write(made.SerializeToString(deterministic=True))


def onnx_inputs(model: Any, X: ArrayLike) -> dict[str, NDArray[Any]]:
    """Convert a table to the inputs of the ONNX file of a model.

    Parameters
    ----------
    model : estimator
        The model that was exported with :func:`to_onnx`.
    X : DataFrame of pandas or polars, or array-like of shape (rows, features)

    Returns
    -------
    dict of str to array of shape (rows, 1)
        Arrays of text or float64, for ``onnxruntime.InferenceSession.run``.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from castlereg import CastleRegressor, onnx_inputs
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = CastleRegressor(max_epochs=20, random_state=0).fit(X, y)
    >>> onnx_inputs(model, X[:2])["bmi"].round(3)
    array([[ 0.062],
           [-0.051]])
    """
    fitted = _exportable(model)
    columns = read_features(model, X)
    coded = fitted.cells(columns)  # raises and warns as predict does
    return {
        column.name: _input(column, column_type, columns.column(j), coded[:, j])[:, None]
        for j, (column, column_type) in enumerate(zip(fitted.preprocessing.schema, columns.types, strict=True))
    }


def _input(
    column: ColumnSchema, column_type: ColumnType, cells: NDArray[np.float64], coded: NDArray[np.float64]
) -> NDArray[Any]:
    if column.holds == "nothing":
        return np.full(len(cells), np.nan)
    if not column.is_coded:
        return coded
    if not _is_text(column):
        return cells if column_type.levels is None else values_of_levels(cells, column_type, column, "X")
    missing = _missing_text(column)
    texts = [_UNKNOWN_TEXT if level == missing else level for level in column_type.levels or ()]
    return np.array([*texts, missing], object)[np.where(np.isnan(cells), -1, cells).astype(np.int64)]


def _exportable(model: Any) -> FittedModel:
    """Return the fitted model of an estimator."""
    if not isinstance(model, NetworkEstimator):
        raise TypeError(f"{type(model).__name__} is not an estimator of castlereg")
    check_is_fitted(model)
    return model.model_


def _output_names(targets: Sequence[Target]) -> list[tuple[str, ...]]:
    """Return the output names of every target: its prediction and, for classes, its probabilities."""
    shared = len(targets) == 1 or all(target.is_numeric for target in targets)
    suffixes = ["" if shared else f"_{target.name}" for target in targets]
    return [
        tuple(f"{name}{suffix}" for name in ("prediction", *_also(target)))
        for target, suffix in zip(targets, suffixes, strict=True)
    ]


def _also(target: Target) -> list[str]:
    """Return the names of the outputs of a target in addition to its prediction."""
    if not target.is_numeric:
        return ["probabilities"]
    return ["quantiles"] if isinstance(target.node.loss, Quantiles) else []


def _is_text(column: ColumnSchema) -> bool:
    return column.holds == "text"


def _missing_text(column: ColumnSchema) -> str:
    """Return the text that represents a missing value."""
    return "" if "" not in (column.levels or ()) else "(missing)"


class _Graph:
    """Operations and constants, with names that differ from those of columns."""

    def __init__(self, taken: set[str]) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self._taken = taken

    def __call__(self, operation: str, *inputs: Any, name: str | None = None, **attributes: Any) -> _Tensor:
        """Add an operation on tensors, arrays and names of columns."""
        import onnx

        names = [x.name if isinstance(x, _Tensor) else x if isinstance(x, str) else self._constant(x) for x in inputs]
        output = self._new_name(operation) if name is None else name
        self.nodes.append(onnx.helper.make_node(operation, names, [output], **attributes))
        return _Tensor(self, output)

    def _constant(self, value: Any) -> str:
        import onnx

        name = self._new_name("constant")
        self.constants.append(onnx.numpy_helper.from_array(np.asarray(value), name))  # texts are objects
        return name

    def _new_name(self, stem: str) -> str:
        number = len(self.nodes) + len(self.constants)
        while f"{stem}_{number}" in self._taken:
            number += 1
        self._taken.add(f"{stem}_{number}")
        return f"{stem}_{number}"

    def as_numbers(self, flags: _Tensor) -> _Tensor:
        """Turn booleans into 0.0 and 1.0."""
        return self("Where", flags, 1.0, 0.0)

    # The graph is the array namespace of its tensors.

    def sqrt(self, values: _Tensor) -> _Tensor:
        """Return square roots."""
        return self("Sqrt", values)

    def exp(self, values: _Tensor) -> _Tensor:
        """Return exponentials."""
        return self("Exp", values)

    def minimum(self, values: _Tensor, most: float) -> _Tensor:
        """Return the values, or ``most`` where they are larger."""
        return self("Min", values, np.float64(most))

    def logaddexp(self, values: _Tensor, zero: float) -> _Tensor:
        """Return ``log(exp(values) + 1)`` without overflow; ``zero`` is the logarithm of one."""
        return self("Relu", values) + self("Log", self("Exp", self("Neg", self("Abs", values))) + 1)

    def concat(self, parts: list[_Tensor], axis: int) -> _Tensor:
        """Join tensors along an axis."""
        return self("Concat", *parts, axis=axis)


class _Tensor:
    """A tensor of a graph. Arithmetic with it adds operations to the graph, so array functions build the graph."""

    def __init__(self, graph: _Graph, name: str) -> None:
        self.graph, self.name = graph, name

    def __array_namespace__(self) -> _Graph:
        return self.graph

    def _combined(self, operation: str, other: Any) -> _Tensor:
        return self.graph(operation, self, other if isinstance(other, _Tensor) else np.asarray(other, np.float64))

    __add__ = __radd__ = partialmethod(_combined, "Add")
    __sub__ = partialmethod(_combined, "Sub")
    __mul__ = partialmethod(_combined, "Mul")
    __truediv__ = partialmethod(_combined, "Div")
    __matmul__ = partialmethod(_combined, "MatMul")
    __pow__ = partialmethod(_combined, "Pow")

    def __getitem__(self, key: tuple[Any, slice]) -> _Tensor:
        """Take a slice of the last axis, written as ``[..., first:last]``."""
        _, last = key
        return self.graph("Slice", self, [last.start], [last.stop], [-1])

    def __rsub__(self, other: Any) -> _Tensor:
        return self * -1 + other


def _encoded(graph: _Graph, preprocessing: Preprocessing) -> _Tensor:
    """Return :meth:`Preprocessing.encode`, shape (rows, channels), with NaN for values that each network fills."""
    by_column = groupby(preprocessing.channels, lambda channel: channel.column)
    columns = (_column(graph, preprocessing.schema[j], list(channels)) for j, channels in by_column)
    return graph("Concat", *columns, axis=1)


def _column(graph: _Graph, column: ColumnSchema, channels: list[Channel]) -> _Tensor:
    """Return the channels of a column: its levels or value, its seasons, and its missing indicator, if any."""
    if column.kind == "unusable":
        return graph.as_numbers(graph("IsNaN", column.name)) * 0
    if _is_text(column):
        missing = graph("Equal", column.name, np.array([_missing_text(column)], object))
    else:
        missing = graph("IsNaN", column.name)
    first = channels[0]
    if column.levels is None:
        value_channels = [channel for channel in channels if channel.kind != "missing"]
        center, spread = (np.array([[getattr(c, name) for c in value_channels]]) for name in ("center", "spread"))
        values = (_Tensor(graph, column.name) - center) * (1 / spread)
        if len(value_channels) > 1:
            is_season = np.array([[channel.kind == "season" for channel in value_channels]])
            values = graph("Where", is_season, graph("Sin", values), values)
    else:
        values = is_level = _is_level(graph, column, missing)
        if first.kind == "value":
            value = (is_level @ np.arange(len(column.levels))[:, None] - first.center) * (1 / first.spread)
            is_known = graph("Greater", graph("ReduceSum", is_level, [1], keepdims=1), 0.0)
            values = graph("Where", is_known, value, np.float64(first.unknown or 0))
    values = graph("Where", missing, np.float64(first.fill), values)
    return graph("Concat", values, graph.as_numbers(missing), axis=1) if channels[-1].kind == "missing" else values


def _is_level(graph: _Graph, column: ColumnSchema, missing: _Tensor) -> _Tensor:
    """Return one-hot levels, shape (rows, levels); unknown levels become the joined level, if any."""
    assert column.levels is not None
    is_joined = np.array([[float(level == OTHER) for level in column.levels]])
    levels = column.levels if _is_text(column) else [np.nan if level == OTHER else level for level in column.levels]
    equal = graph.as_numbers(graph("Equal", column.name, np.array([levels], object if _is_text(column) else float)))
    if not is_joined.any():
        return equal
    known = graph("ReduceSum", equal, [1], keepdims=1) + graph.as_numbers(missing)
    return equal + (1 - known) * is_joined


def _predictions(graph: _Graph, predictor: Networks | Blend) -> list[_Tensor]:
    """Predict every target by the weighted mean over networks: values (rows, 1), probabilities (rows, classes)."""
    encoded = _encoded(graph, predictor.preprocessing)
    if isinstance(predictor, Networks):
        return _predictions_of(graph, predictor, encoded)
    parts = [_predictions_of(graph, part, encoded) for part in predictor.parts]
    return [
        reduce(add, (values * weight for values, weight in zip(of_target, predictor.weights, strict=True)))
        for of_target in zip(*parts, strict=True)
    ]


def _predictions_of(graph: _Graph, networks: Networks, encoded: _Tensor) -> list[_Tensor]:
    """Predict every target by the mean over networks of one form."""
    inputs = _filled(graph, networks, encoded)
    parameters: Parameters = jax.tree.map(lambda *arrays: np.stack(arrays), *networks.target_networks)
    embedded = None if parameters.embedding is None else _embedded(graph, parameters.embedding, inputs)
    factor, offset = networks.output_scales
    predictions = []
    for k, target in enumerate(networks.preprocessing.targets):
        outputs = _target_outputs(graph, parameters, k, target.node.outputs, inputs, embedded)
        if target.node.loss is not None and isinstance(target, NumericTarget):
            values = target.node.loss.meaning(outputs) * target.spread + target.center
        elif isinstance(target, NumericTarget):
            values = outputs * factor[:, k, None, None] + offset[:, k, None, None]
            values = values * target.spread + target.center
        elif len(target.classes) == 2:
            positive = _logistic(graph, outputs)
            values = graph("Concat", 1 - positive, positive, axis=2)
        else:
            values = graph("Softmax", outputs, axis=2)
        predictions.append(graph("ReduceMean", values, [0], keepdims=0))
    return predictions


def _logistic(graph: _Graph, z: _Tensor) -> _Tensor:
    """Return 1 / (1 + exp(-z)), precise for small values; onnxruntime's Sigmoid subtracts them from one."""
    return graph("Reciprocal", graph("Exp", graph("Neg", z)) + 1)


def _embedded(graph: _Graph, embedding: Embedding, inputs: _Tensor) -> _Tensor:
    """Return the embedded inputs of :func:`castlereg.network.network_inputs`, shape (networks, rows, inputs)."""
    values = graph("Gather", inputs, np.array(embedding.channels.indices, np.int64), axis=2)
    turns = graph("Unsqueeze", values, [3]) * embedding.frequencies[:, None] + embedding.phases[:, None]
    turns = turns - graph("Round", turns)  # then in float32, as prediction does
    cosine = graph("Cos", graph("Cast", turns * (2 * np.pi), to=_FLOAT))
    waves = graph("Transpose", cosine, perm=[0, 2, 1, 3])
    mixed = graph("MatMul", waves, embedding.weights.astype(np.float32))
    mixed = graph("Cast", graph("Transpose", mixed, perm=[0, 2, 1, 3]), to=_DOUBLE)
    n = embedding.weights.shape[1] * embedding.weights.shape[3]
    return graph("Reshape", mixed, np.array([len(embedding.weights), -1, n], np.int64))


def _filled(graph: _Graph, networks: Networks, block: _Tensor) -> _Tensor:
    """Clip channels and fill missing values by each network's numbers, shape (networks or 1, rows, channels)."""
    layout, by = networks.layout, networks.standardization
    d = layout.n_feature_channels
    inputs = graph("Unsqueeze", block, [0])
    if by.clip_center is not None and by.clip_rate is not None:
        drawn_in = smooth_clip((inputs - by.clip_center[:, None, :d]) * by.clip_rate[:, None, :d])
        inputs = graph("Where", layout.is_clipped[:d], drawn_in, inputs)
    if layout.has_missing:
        inputs = graph("Where", graph("IsNaN", inputs), by.shift[:, None, :d].astype(np.float64), inputs)
    return inputs


def _target_outputs(
    graph: _Graph, parameters: Parameters, k: int, n_outputs: int, inputs: _Tensor, embedded: _Tensor | None
) -> _Tensor:
    """Run the sub-networks of a target, shape (networks, rows, outputs)."""
    first, n = parameters.input_weights[:, :, k], parameters.input_weights.shape[1]
    n_channels = n if parameters.embedding is None else n - int(np.prod(parameters.embedding.weights.shape[1::2]))
    z = inputs @ first[:, :n_channels] + parameters.input_bias[:, k][:, None]
    if embedded is not None:
        z = z + embedded @ first[:, n_channels:]
    layers: list[Any] = list(parameters.hidden)
    if parameters.output_weights is not None and parameters.output_bias is not None:
        layers.append((parameters.output_weights[:, k], parameters.output_bias[:, k]))
    for weights, bias in layers:
        active = graph("Relu", z) if parameters.activation.name == "relu" else z * _logistic(graph, z)
        z = active @ weights + bias[:, None]
    return graph("Slice", z, [0], [n_outputs], [2])


def _results(
    graph: _Graph, targets: Sequence[Target], predictions: list[_Tensor], names: list[tuple[str, ...]]
) -> list[onnx.ValueInfoProto]:
    """Add the operations of the outputs, and return the descriptions of the outputs."""
    import onnx

    describe, double = onnx.helper.make_tensor_value_info, onnx.TensorProto.DOUBLE
    if len(targets) > 1 and all(target.is_numeric for target in targets):
        predicted = [_predicted(target, values) for target, values in zip(targets, predictions, strict=True)]
        graph("Concat", *predicted, axis=1, name="prediction")
        results = [describe("prediction", double, [_ROWS, len(targets)])]
        if names[0][1:]:
            graph("Concat", *(graph("Unsqueeze", values, [1]) for values in predictions), axis=1, name="quantiles")
            results.append(describe("quantiles", double, [_ROWS, len(targets), targets[0].node.outputs]))
        return results
    results = []
    for target, values, (prediction, *probabilities) in zip(targets, predictions, names, strict=True):
        if isinstance(target, NumericTarget):
            graph("Squeeze", _predicted(target, values), [1], name=prediction)
            results.append(describe(prediction, double, [_ROWS]))
            if quantiles := probabilities:
                graph("Identity", values, name=quantiles[0])
                results.append(describe(quantiles[0], double, [_ROWS, target.node.outputs]))
            continue
        labels = _labels(target.classes)
        kind = onnx.helper.np_dtype_to_tensor_dtype(labels.dtype)
        graph("Gather", labels, graph("ArgMax", values, axis=1, keepdims=0), name=prediction)
        graph("Identity", values, name=probabilities[0])
        results += [describe(prediction, kind, [_ROWS]), describe(probabilities[0], double, [_ROWS, len(labels)])]
    return results


def _predicted(target: Target, values: _Tensor) -> _Tensor:
    """Convert the values of a numeric target to the result of ``predict``, shape (rows, outputs) to (rows, 1)."""
    loss = target.node.loss
    return values if loss is None else values @ loss.shares[:, None]


def _labels(classes: NDArray[Any]) -> NDArray[Any]:
    """Return the classes as text, booleans, int64 or float64."""
    if classes.dtype.kind == "u" and classes.max() > np.iinfo(np.int64).max:
        raise ValueError(f"class {classes.max()} does not fit into ONNX's int64: use smaller class numbers, or text")
    if classes.dtype.kind in "biuf":
        return classes.astype({"b": np.bool_, "f": np.float64}.get(classes.dtype.kind, np.int64))
    if all(isinstance(label, str) for label in classes):
        return classes.astype(object)
    return _labels(np.array(classes.tolist()))  # numbers as objects
