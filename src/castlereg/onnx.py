"""Export of a fitted predictor to ONNX: encoding, networks and what is made of their outputs, all in float64.

The graph walks the channels of a :class:`castlereg.data.preprocessing.Preprocessing`, and then repeats what
:class:`castlereg.estimators.fitted_network.FittedNetwork` does to a row.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from castlereg.atomic_write import atomic_write
from castlereg.data.preprocessing import Channel, Preprocessing
from castlereg.data.reading import ColumnType
from castlereg.data.scaling import CLIP
from castlereg.data.schema import OTHER, ColumnSchema, coded_columns, values_of_levels
from castlereg.data.targets import ClassTarget, NumericTarget, Target
from castlereg.estimators.base import NetworkEstimator
from castlereg.estimators.fitted_network import FittedNetwork
from castlereg.network import Parameters

if TYPE_CHECKING:
    import onnx

_OPSET, _IR = 19, 9  # the first to compare texts, and the file version that goes with it
_ROWS = "rows"
_UNKNOWN_TEXT = "(not known)"  # for a text that would be taken for a missing value


def to_onnx(model: Any, path: str | os.PathLike[str]) -> None:
    """Write the predictor of a fitted model as an ONNX file.

    The file has one input for every column, by its name and of shape (rows, 1): text for columns of text, float64 for
    all others, booleans among them. A missing number is NaN, a missing text is empty; :func:`onnx_inputs` makes
    the inputs of a frame. The output ``prediction`` is what ``predict`` returns: values, or labels as text,
    int64, float64 or booleans. Classifiers have ``probabilities`` too, as ``predict_proba``. Of several targets with
    classes among them, every target has outputs of its own, ``prediction_<target>`` and ``probabilities_<target>``.

    Needs ``castlereg[onnx]``.

    Parameters
    ----------
    model : estimator
        Any fitted estimator of castlereg. A column of dates has no form in ONNX and is refused.
    path : str or path
        Where to; ``.onnx`` by custom.

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

    _check_model(model)
    coding = model._coding
    schema, targets = coding.schema, coding.targets
    outputs = _output_names(targets)
    _check_input_names(schema, [name for names in outputs for name in names])
    graph = _Graph({column.name for column in schema} | {name for names in outputs for name in names})
    seen = _as_seen(graph, model.network_, _encoded(graph, coding))
    decoded = [
        _decoded(graph, target, _outputs(graph, model.network_, k, seen), model.network_, k)
        for k, target in enumerate(targets)
    ]
    results = _results(graph, targets, decoded, outputs)
    made = onnx.helper.make_model(
        onnx.helper.make_graph(
            graph.nodes,
            type(model).__name__,
            [
                onnx.helper.make_tensor_value_info(
                    column.name, onnx.TensorProto.STRING if _is_text(column) else onnx.TensorProto.DOUBLE, [_ROWS, 1]
                )
                for column in schema
            ],
            results,
            graph.constants,
        ),
        opset_imports=[onnx.helper.make_opsetid("", _OPSET)],
        ir_version=_IR,
        producer_name="castlereg",
        producer_version=__version__,
    )
    onnx.helper.set_model_props(
        made,
        {
            "castlereg": __version__,
            "estimator": type(model).__name__,
            "targets": json.dumps([target.name for target in targets]),
            "missing_text": json.dumps({column.name: _missing_text(column) for column in schema if _is_text(column)}),
        },
    )
    onnx.checker.check_model(made, full_check=True)
    with atomic_write(Path(path)) as file:
        file.write(made.SerializeToString(deterministic=True))


def onnx_inputs(model: Any, X: ArrayLike) -> dict[str, NDArray[Any]]:
    """Turn a table into the inputs of the ONNX file of a model.

    Parameters
    ----------
    model : estimator
        The model that was given to :func:`to_onnx`.
    X : DataFrame of pandas or polars, or array-like of shape (rows, features)

    Returns
    -------
    dict of str to array of shape (rows, 1)
        Texts, or float64; for ``onnxruntime.InferenceSession.run``.

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
    _check_model(model)
    schema = model._coding.schema
    columns = model._read_features(X, reset=False)
    coded_columns(columns, schema)  # raises and warns as predict does
    return {
        column.name: _input(column, given, cells)[:, None]
        for column, given, cells in zip(schema, columns.types, columns.cells.T, strict=True)
    }


def _input(column: ColumnSchema, given: ColumnType, cells: NDArray[np.float64]) -> NDArray[Any]:
    if column.holds == "nothing":
        return np.full(len(cells), np.nan)
    if not _is_text(column):
        values = cells if given.levels is None else values_of_levels(given, cells)
        assert values is not None  # coded_columns has read them
        return values
    missing = _missing_text(column)
    texts = [_UNKNOWN_TEXT if level == missing else level for level in given.levels or ()]
    return np.array([*texts, missing], object)[np.where(np.isnan(cells), -1, cells).astype(np.int64)]


# --- what can be exported ------------------------------------------------------------------------------


def _check_model(model: Any) -> None:
    if not isinstance(model, NetworkEstimator):
        raise TypeError(f"a {type(model).__name__} is no estimator of castlereg")
    check_is_fitted(model)
    for column in model._coding.schema:
        if column.holds == "dates":
            raise ValueError(
                f"column {column.name!r} holds dates, which ONNX does not have: fit on a number instead, such as "
                f"days = (X[{column.name!r}] - pd.Timestamp('1970-01-01')).dt.days"
            )


def _check_input_names(schema: Sequence[ColumnSchema], outputs: list[str]) -> None:
    for column in schema:
        if not column.name or column.name in outputs:
            raise ValueError(f"column {column.name!r} cannot be an input of this name beside {outputs}: rename it")


def _output_names(targets: Sequence[Target]) -> list[tuple[str, ...]]:
    """Name the prediction and, for classes, the probabilities of every target."""
    if len(targets) == 1 or all(isinstance(target, NumericTarget) for target in targets):
        return [("prediction",) if isinstance(target, NumericTarget) else _both("") for target in targets]
    names = [target.name for target in targets]
    names = [name if names.count(name) == 1 else f"{name}_{k}" for k, name in enumerate(names)]
    return [
        (f"prediction_{name}",) if isinstance(target, NumericTarget) else _both(f"_{name}")
        for name, target in zip(names, targets, strict=True)
    ]


def _both(suffix: str) -> tuple[str, str]:
    return f"prediction{suffix}", f"probabilities{suffix}"


def _is_text(column: ColumnSchema) -> bool:
    return column.holds == "text"


def _missing_text(column: ColumnSchema) -> str:
    """Return the text that stands for a missing value."""
    return "" if "" not in (column.levels or ()) else "(missing)"


# --- building a graph ----------------------------------------------------------------------------------


class _Graph:
    """Operations and constants, each with a name that no column has."""

    def __init__(self, taken: set[str]) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self._taken = taken

    def __call__(self, operation: str, *inputs: Any, name: str | None = None, **attributes: Any) -> str:
        """Add an operation, and return the name of its output; inputs are such names, or arrays."""
        import onnx

        own = [one if isinstance(one, str) else self._constant(one) for one in inputs]
        output = self._new_name(operation) if name is None else name
        self.nodes.append(onnx.helper.make_node(operation, own, [output], **attributes))
        return output

    def _constant(self, value: Any) -> str:
        import onnx

        array, name = np.asarray(value), self._new_name("constant")
        if array.dtype.kind in "OU":
            texts = [str(text).encode() for text in array.ravel()]
            kind = onnx.TensorProto.STRING
            self.constants.append(onnx.helper.make_tensor(name, kind, array.shape, texts))  # type: ignore[arg-type]
        else:
            self.constants.append(onnx.numpy_helper.from_array(array, name))
        return name

    def _new_name(self, stem: str) -> str:
        number = len(self.nodes) + len(self.constants)
        while f"{stem}_{number}" in self._taken:
            number += 1
        self._taken.add(f"{stem}_{number}")
        return f"{stem}_{number}"

    def as_numbers(self, flags: str) -> str:
        """Turn booleans into 0.0 and 1.0."""
        import onnx

        return self("Cast", flags, to=onnx.TensorProto.DOUBLE)


# --- from inputs to channels ---------------------------------------------------------------------------


def _encoded(graph: _Graph, preprocessing: Preprocessing) -> str:
    """Return :meth:`Preprocessing.encode`, shape (rows, channels): NaN for what each member fills itself."""
    by_column = groupby(preprocessing.channels, lambda channel: channel.column)
    return graph(
        "Concat", *(_column(graph, preprocessing.schema[j], list(channels)) for j, channels in by_column), axis=1
    )


def _column(graph: _Graph, column: ColumnSchema, channels: list[Channel]) -> str:
    """Return the channels of a column: its levels or its value, and the missing indicator if there is one."""
    missing = graph("Equal", column.name, [_missing_text(column)]) if _is_text(column) else graph("IsNaN", column.name)
    first = channels[0]
    if column.levels is None:
        values = _scaled(graph, column.name, first)
    else:
        values = hits = _levels_hit(graph, column, missing)
        if first.kind == "value":
            place = graph("MatMul", hits, np.arange(len(column.levels), dtype=np.float64)[:, None])
            is_known = graph("Greater", graph("ReduceSum", hits, [1], keepdims=1), np.float64(0))
            values = graph("Where", is_known, _scaled(graph, place, first), np.float64(first.unknown or 0))
    values = graph("Where", missing, np.float64(first.fill), values)
    return graph("Concat", values, graph.as_numbers(missing), axis=1) if channels[-1].kind == "missing" else values


def _scaled(graph: _Graph, values: str, channel: Channel) -> str:
    return graph("Div", graph("Sub", values, np.float64(channel.center)), np.float64(channel.spread))


def _levels_hit(graph: _Graph, column: ColumnSchema, missing: str) -> str:
    """Tell which level a cell is, shape (rows, levels); none for missing and unknown ones, unless some were joined."""
    assert column.levels is not None
    levels = [*column.levels]
    is_joined = np.array([[float(level == OTHER) for level in levels]])
    if not _is_text(column):
        levels = [np.nan if level == OTHER else level for level in levels]
    hits = graph.as_numbers(graph("Equal", column.name, np.array([levels], str if _is_text(column) else np.float64)))
    if not is_joined.any():
        return hits
    known = graph("Add", graph("ReduceSum", hits, [1], keepdims=1), graph.as_numbers(missing))
    return graph("Add", hits, graph("Mul", graph("Sub", np.float64(1), known), is_joined))


def _as_seen(graph: _Graph, network: FittedNetwork, block: str) -> str:
    """Draw clipped channels in and fill missing values by each member's numbers: (members or 1, rows, channels)."""
    d, by = network.layout.n_feature_channels, network.standardization
    seen = graph("Unsqueeze", block, [0])
    if by.clip_center is not None and by.clip_rate is not None:
        z = graph("Mul", graph("Sub", block, _by_member(by.clip_center[:, :d])), _by_member(by.clip_rate[:, :d]))
        share = graph("Div", z, np.float64(CLIP))
        root = graph("Sqrt", graph("Add", graph("Mul", share, share), np.float64(1)))
        seen = graph("Where", network.layout.is_clipped[:d], graph("Div", z, root), seen)
    if network.layout.has_gaps:
        seen = graph("Where", graph("IsNaN", seen), _by_member(by.shift[:, :d]), seen)
    return seen


def _by_member(array: NDArray[np.float32]) -> NDArray[np.float64]:
    return array.astype(np.float64)[:, None]


# --- from channels to predictions ----------------------------------------------------------------------


def _outputs(graph: _Graph, network: FittedNetwork, k: int, seen: str) -> str:
    """Run the sub-networks of a target: shape (members, rows, outputs)."""
    levels = network.layout.nodes[network.layout.targets[k]].levels
    members: Sequence[Parameters] = network.target_networks
    z = graph("MatMul", seen, np.stack([one.input_weights[:, k] for one in members]))
    z = graph("Add", z, np.stack([one.input_bias[k] for one in members])[:, None])
    if members[0].output_weights is None:
        return graph("Slice", z, [0], [levels], [2])
    z = graph("Relu", z)
    for layers in zip(*(one.hidden for one in members), strict=True):
        z = graph("MatMul", z, np.stack([layer.weights for layer in layers]))
        z = graph("Relu", graph("Add", z, np.stack([layer.bias for layer in layers])[:, None]))
    weights, biases = [one.output_weights for one in members], [one.output_bias for one in members]
    z = graph("MatMul", z, np.stack([w[k][:, :levels] for w in weights if w is not None]))
    return graph("Add", z, np.stack([b[k][:levels] for b in biases if b is not None])[:, None])


def _decoded(graph: _Graph, target: Target, outputs: str, network: FittedNetwork, k: int) -> str:
    """Turn outputs into values, shape (rows, 1), or probabilities, shape (rows, classes): the mean over members."""
    if isinstance(target, NumericTarget):
        by, channel = network.standardization, network.layout.output_channels[network.layout.targets[k], 0]
        shift, scale = (array[:, channel].astype(np.float64)[:, None, None] for array in (by.shift, by.scale))
        spread = np.where(scale > 0, 1 / np.where(scale > 0, scale, 1.0), 0.0)
        outputs = graph("Add", graph("Mul", outputs, spread), shift)
        outputs = graph("Add", graph("Mul", outputs, np.float64(target.spread)), np.float64(target.center))
    elif len(target.classes) == 2:
        # Small probabilities keep their digits this way; onnxruntime's Sigmoid takes them from one.
        positive = graph("Div", np.float64(1), graph("Add", graph("Exp", graph("Neg", outputs)), np.float64(1)))
        outputs = graph("Concat", graph("Sub", np.float64(1), positive), positive, axis=2)
    else:
        outputs = graph("Softmax", outputs, axis=2)
    return graph("ReduceMean", outputs, [0], keepdims=0)


def _results(
    graph: _Graph, targets: Sequence[Target], decoded: list[str], names: list[tuple[str, ...]]
) -> list[onnx.ValueInfoProto]:
    """Add the operations that give the outputs, and describe these."""
    import onnx

    describe, double = onnx.helper.make_tensor_value_info, onnx.TensorProto.DOUBLE
    if all(isinstance(target, NumericTarget) for target in targets):
        if len(targets) == 1:
            return [describe(graph("Squeeze", decoded[0], [1], name="prediction"), double, [_ROWS])]
        return [describe(graph("Concat", *decoded, axis=1, name="prediction"), double, [_ROWS, len(targets)])]
    results = []
    for target, value, own in zip(targets, decoded, names, strict=True):
        if isinstance(target, ClassTarget):
            labels = _labels(target)
            place = graph("ArgMax", value, axis=1, keepdims=0)
            kind = onnx.TensorProto.STRING
            if labels.dtype.kind != "O":
                kind = onnx.helper.np_dtype_to_tensor_dtype(labels.dtype)
            results.append(describe(graph("Gather", labels, place, name=own[0]), kind, [_ROWS]))
            results.append(describe(graph("Identity", value, name=own[1]), double, [_ROWS, len(labels)]))
        else:
            results.append(describe(graph("Squeeze", value, [1], name=own[0]), double, [_ROWS]))
    return results


def _labels(target: ClassTarget) -> NDArray[Any]:
    """Return the classes as text, booleans, int64 or float64."""
    kind = target.classes.dtype.kind
    if kind in "biuf":
        return target.classes.astype({"b": np.bool_, "f": np.float64}.get(kind, np.int64))
    if all(isinstance(label, str) for label in target.classes):
        return target.classes.astype(object)
    return _labels(ClassTarget(target.name, np.array(target.classes.tolist())))  # numbers as objects
