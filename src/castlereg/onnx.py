"""Export of a fitted model to ONNX: encoding, networks and decoding of their outputs, all in float64.

The encoding is that of :class:`castlereg.table.encoding.Preprocessing`; the inputs and outputs of each network are
those of :class:`castlereg.search.Networks`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partialmethod, reduce
from itertools import count, groupby
from operator import add, mul
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from castlereg.atomic_write import atomic_write
from castlereg.estimators.base import NetworkEstimator, read_features
from castlereg.network import Embedding, Parameters
from castlereg.search import Blend, FittedModel, Networks
from castlereg.table.encoding import Channel, smooth_clip
from castlereg.table.reading import ColumnType
from castlereg.table.schema import OTHER, ColumnSchema, values_of_levels
from castlereg.table.targets import ClassTarget, NumericTarget, Target
from castlereg.target_losses import Quantiles

if TYPE_CHECKING:
    import onnx

_OPSET, _IR = 19, 9  # the first version that compares texts, and the matching file version
_FLOAT, _TEXT, _DOUBLE = 1, 8, 11  # constants of onnx.TensorProto
_ROWS = "rows"
_UNKNOWN_TEXT = "(not known)"  # for a text that would be read as a missing value


def to_onnx(model: Any, path: str | os.PathLike[str]) -> None:
    """Write the predictor of a fitted model as an ONNX file.

    The file has one input per column, with the name of the column and shape (rows, 1): text for columns of text, and
    float64 for all others. :func:`onnx_inputs` converts a frame to these inputs. The output ``prediction`` is what
    ``predict`` returns; classifiers also have ``probabilities``, and targets with quantiles ``quantiles``. With several
    targets of classes, every target has its own, ``prediction_<target>`` and ``probabilities_<target>``.

    Needs ``castlereg[onnx]``; details: ``docs/deployment.md``.

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
    for column in schema:
        if not column.name or column.name in names:
            outputs = ", ".join(sorted(names))
            raise ValueError(f"column {column.name!r} has no name or that of an ONNX output ({outputs}): rename it")
    graph = _Graph({*names, *(column.name for column in schema)})
    results = _results(graph, targets, _predictions(graph, fitted.blend), names)
    inputs = [
        onnx.helper.make_tensor_value_info(column.name, _TEXT if column.holds == "text" else _DOUBLE, [_ROWS, 1])
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
        "missing_text": json.dumps({column.name: _missing_text(column) for column in schema if column.holds == "text"}),
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
    if column.holds != "text":
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


def _output_names(targets: Sequence[Target]) -> list[str]:
    """Return the names of all outputs: predictions, and probabilities or quantiles if there are any."""
    if targets[0].is_numeric:
        return ["prediction", "quantiles"] if isinstance(targets[0].node.loss, Quantiles) else ["prediction"]
    suffixes = [""] if len(targets) == 1 else [f"_{target.name}" for target in targets]
    return [f"{name}{suffix}" for suffix in suffixes for name in ("prediction", "probabilities")]


def _missing_text(column: ColumnSchema) -> str:
    """Return the text that represents a missing value."""
    return "" if "" not in (column.levels or ()) else "(missing)"


class _Graph:
    """Operations and constants, with names that differ from those of columns."""

    def __init__(self, taken: set[str]) -> None:
        import onnx

        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self._taken, self._node, self._array = taken, onnx.helper.make_node, onnx.numpy_helper.from_array

    def __call__(self, operation: str, *inputs: Any, name: str | None = None, **attributes: Any) -> _Tensor:
        """Add an operation on tensors, arrays and names of columns."""
        names = [x.name if isinstance(x, _Tensor) else x if isinstance(x, str) else self._constant(x) for x in inputs]
        output = self._new_name(operation) if name is None else name
        self.nodes.append(self._node(operation, names, [output], **attributes))
        return _Tensor(self, output)

    def _constant(self, value: Any) -> str:
        name = self._new_name("constant")
        self.constants.append(self._array(np.asarray(value), name))  # texts are objects
        return name

    def _new_name(self, stem: str) -> str:
        names = (f"{stem}_{number}" for number in count(len(self.nodes) + len(self.constants)))
        name = next(name for name in names if name not in self._taken)
        self._taken.add(name)
        return name

    def as_numbers(self, flags: _Tensor) -> _Tensor:
        """Turn booleans into 0.0 and 1.0."""
        return self("Where", flags, 1.0, 0.0)

    # The graph is the array namespace of its tensors.
    sqrt, exp, minimum = partialmethod(__call__, "Sqrt"), partialmethod(__call__, "Exp"), partialmethod(__call__, "Min")

    def logaddexp(self, values: _Tensor, zero: float) -> _Tensor:
        """Return ``log(exp(values) + 1)`` without overflow; ``zero`` is the logarithm of one."""
        return self("Relu", values) + self("Log", self("Exp", self("Neg", self("Abs", values))) + 1)

    def concat(self, parts: list[_Tensor], axis: int) -> _Tensor:
        """Join tensors along an axis."""
        return self("Concat", *parts, axis=axis)


@dataclass(frozen=True, eq=False)
class _Tensor:
    """A tensor of a graph. Arithmetic with it adds operations to the graph, so array functions build the graph."""

    graph: _Graph
    name: str

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


def _column(graph: _Graph, column: ColumnSchema, channels: list[Channel]) -> _Tensor:
    """Return the channels of a column: its levels or value, its seasons, and its missing indicator, if any."""
    if column.kind == "unusable":
        return graph.as_numbers(graph("IsNaN", column.name)) * 0
    if column.holds == "text":
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
    names: Any = column.levels
    is_joined, is_text = np.array([[float(name == OTHER) for name in names]]), column.holds == "text"
    levels = names if is_text else [np.nan if name == OTHER else name for name in names]
    equal = graph.as_numbers(graph("Equal", column.name, np.array([levels], object if is_text else float)))
    if not is_joined.any():
        return equal
    known = graph("ReduceSum", equal, [1], keepdims=1) + graph.as_numbers(missing)
    return equal + (1 - known) * is_joined


def _predictions(graph: _Graph, blend: Blend) -> list[_Tensor]:
    """Predict every target by the weighted mean over networks: values (rows, 1), probabilities (rows, classes)."""
    preprocessing = blend.preprocessing
    by_column = groupby(preprocessing.channels, lambda channel: channel.column)
    columns = (_column(graph, preprocessing.schema[j], list(channels)) for j, channels in by_column)
    encoded = graph("Concat", *columns, axis=1)  # as Preprocessing.encode, NaN for values that each network fills
    by_part = [_predictions_of(graph, part, encoded) for part in blend.parts]
    return [reduce(add, map(mul, values, blend.weights)) for values in zip(*by_part, strict=True)]


def _predictions_of(graph: _Graph, networks: Networks, encoded: _Tensor) -> list[_Tensor]:
    """Predict every target by the mean over networks of one form."""
    layout, own, d = networks.layout, networks.standardization, networks.layout.n_feature_channels
    inputs = graph("Unsqueeze", encoded, [0])  # (networks or 1, rows, channels)
    if own.clip_center is not None and own.clip_rate is not None:
        clipped = smooth_clip((inputs - own.clip_center[:, None, :d]) * own.clip_rate[:, None, :d])
        inputs = graph("Where", layout.is_clipped[:d], clipped, inputs)
    if layout.has_missing:
        inputs = graph("Where", graph("IsNaN", inputs), own.shift[:, None, :d].astype(np.float64), inputs)
    parameters: Parameters = jax.tree.map(lambda *arrays: np.stack(arrays), *networks.target_networks)
    embedded = None if parameters.embedding is None else _embedded(graph, parameters.embedding, inputs)
    factor, offset = (scales[:, :, None, None] for scales in networks.output_scales)
    predictions = []
    for k, target in enumerate(networks.preprocessing.targets):
        values = _target_outputs(graph, parameters, k, target.node.outputs, inputs, embedded)
        if isinstance(target, NumericTarget):
            loss = target.node.loss
            values = values * factor[:, k] + offset[:, k] if loss is None else loss.meaning(values)
            values = values * target.spread + target.center
        elif len(target.classes) == 2:
            positive = _logistic(graph, values)
            values = graph("Concat", 1 - positive, positive, axis=2)
        else:
            values = graph("Softmax", values, axis=2)
        predictions.append(graph("ReduceMean", values, [0], keepdims=0))
    return predictions


def _logistic(graph: _Graph, z: _Tensor) -> _Tensor:
    """Return 1 / (1 + exp(-z)), precise for small values; onnxruntime's Sigmoid subtracts them from one."""
    return graph("Reciprocal", graph("Exp", graph("Neg", z)) + 1)


def _embedded(graph: _Graph, embedding: Embedding, inputs: _Tensor) -> _Tensor:
    """Return the embedded inputs of the network, shape (networks, rows, inputs)."""
    values = graph("Gather", inputs, np.array(embedding.channels.indices, np.int64), axis=2)
    turns = graph("Unsqueeze", values, [3]) * embedding.frequencies[:, None] + embedding.phases[:, None]
    turns = turns - graph("Round", turns)  # then in float32, as prediction does
    cosine = graph("Cos", graph("Cast", turns * (2 * np.pi), to=_FLOAT))
    waves = graph("Transpose", cosine, perm=[0, 2, 1, 3])
    mixed = graph("MatMul", waves, embedding.weights.astype(np.float32))
    mixed = graph("Cast", graph("Transpose", mixed, perm=[0, 2, 1, 3]), to=_DOUBLE)
    n = embedding.weights.shape[1] * embedding.weights.shape[3]
    return graph("Reshape", mixed, np.array([len(embedding.weights), -1, n], np.int64))


def _target_outputs(
    graph: _Graph, parameters: Parameters, k: int, n_outputs: int, inputs: _Tensor, embedded: _Tensor | None
) -> _Tensor:
    """Run the sub-networks of a target, shape (networks, rows, outputs)."""
    first, embedding = parameters.input_weights[:, :, k], parameters.embedding
    n_channels = first.shape[1] - (0 if embedding is None else int(np.prod(embedding.weights.shape[1::2])))
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
    graph: _Graph, targets: Sequence[Target], predictions: list[_Tensor], names: list[str]
) -> list[onnx.ValueInfoProto]:
    """Add the operations of the outputs, and return the descriptions of the outputs."""
    import onnx

    describe, results = onnx.helper.make_tensor_value_info, []
    if not targets[0].is_numeric:
        for target, values, name, shares in zip(targets, predictions, names[::2], names[1::2], strict=True):
            assert isinstance(target, ClassTarget)
            labels = _labels(target.classes)
            graph("Gather", labels, graph("ArgMax", values, axis=1, keepdims=0), name=name)
            graph("Identity", values, name=shares)
            results.append(describe(name, onnx.helper.np_dtype_to_tensor_dtype(labels.dtype), [_ROWS]))
            results.append(describe(shares, _DOUBLE, [_ROWS, len(labels)]))
        return results
    losses = [target.node.loss for target in targets]
    means = [v if loss is None else v @ loss.shares[:, None] for v, loss in zip(predictions, losses, strict=True)]
    shape: list[Any] = [_ROWS, len(targets)]
    if len(targets) == 1:
        graph("Squeeze", means[0], [1], name="prediction")
        shape = [_ROWS]
    else:
        graph("Concat", *means, axis=1, name="prediction")
        predictions = [graph("Unsqueeze", values, [1]) for values in predictions]
    if "quantiles" in names:
        graph("Concat", *predictions, axis=1, name="quantiles")
        results.append(describe("quantiles", _DOUBLE, [*shape, targets[0].node.outputs]))
    return [describe("prediction", _DOUBLE, shape), *results]


def _labels(classes: NDArray[Any]) -> NDArray[Any]:
    """Return the classes as text, booleans, int64 or float64."""
    if classes.dtype.kind == "u" and classes.max() > np.iinfo(np.int64).max:
        raise ValueError(f"class {classes.max()} does not fit into ONNX's int64: use smaller class numbers, or text")
    if classes.dtype.kind in "biuf":
        return classes.astype({"b": np.bool_, "f": np.float64}.get(classes.dtype.kind, np.int64))
    if all(isinstance(label, str) for label in classes):
        return classes.astype(object)
    return _labels(np.array(classes.tolist()))  # numbers as objects
