"""Convert the path from rows to predictions: columns, levels, scales and targets, and the networks."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any, Literal, get_type_hints

import numpy as np

from castlereg.fitted import Blend, Networks
from castlereg.network import Activation, ActivationName, Dense, Embedding, Parameters, value_channels
from castlereg.persistence.container import Arrays, StoredArrays
from castlereg.persistence.json_content import Unreadable, fields
from castlereg.persistence.values import read_value, write_value
from castlereg.table.preprocessing import Preprocessing, feature_nodes
from castlereg.table.schema import ColumnSchema
from castlereg.table.table import Standardization
from castlereg.table.targets import ClassTarget, NumericTarget, Target
from castlereg.target_losses import TargetLoss

_COLUMN = get_type_hints(ColumnSchema)
_Direction = Literal["any", "rises", "falls"]
_WORDS: dict[int, _Direction] = {0: "any", 1: "rises", -1: "falls"}  # directions of the targets as a column increases
MOST_EMBEDDED = 1024  # inputs per number; a file with more is damaged
_NUMERIC_TARGET = {"name": str, "center": float, "spread": float, "loss": object}


def write_preprocessing(preprocessing: Preprocessing, arrays: Arrays) -> dict[str, Any]:
    """Return the columns and targets as JSON; scales are added to the arrays."""
    arrays |= {"columns/center": preprocessing.center, "columns/spread": preprocessing.spread}
    return {
        "columns": [asdict(column) for column in preprocessing.schema],
        "order": [int(j) for j in preprocessing.order],
        "clipped": any(node.clipped for node in preprocessing.nodes),
        "monotone": [_WORDS[sign] for sign in preprocessing.monotone],
        "targets": [
            _written_number(target, arrays)
            if isinstance(target, NumericTarget)
            else {"name": target.name, "classes": write_value(target.classes, arrays)}
            for target in preprocessing.targets
        ],
    }


def _written_number(target: NumericTarget, arrays: Arrays) -> dict[str, Any]:
    scales = {"name": target.name, "center": target.center, "spread": target.spread}
    return scales | {"loss": write_value(target.loss, arrays)}


def read_preprocessing(content: Any, arrays: StoredArrays) -> Preprocessing:
    """Undo :func:`write_preprocessing`."""
    kinds = {"columns": list, "order": list[int], "clipped": bool, "monotone": list[_Direction], "targets": list}
    stored = fields(content, "its preprocessing", **kinds)
    schema, order = tuple(map(read_column, stored.columns)), tuple(stored.order)
    if not schema or sorted(order) != list(range(len(schema))):
        raise Unreadable(f"the order of its {len(schema)} columns is invalid")
    if not stored.targets:
        raise Unreadable("it has no target")
    center, spread = (
        arrays.take(f"columns/{name}", np.float64, (len(schema),), finite=True) for name in ("center", "spread")
    )
    if not (spread > 0).all():
        raise Unreadable("its array 'columns/spread' has numbers that are not positive")
    if len(stored.monotone) != len(schema):
        raise Unreadable(f"it has {len(schema)} columns, but monotone directions for {len(stored.monotone)}")
    signs = {word: sign for sign, word in _WORDS.items()}
    try:
        of_columns = feature_nodes(schema, stored.clipped, [signs[word] for word in stored.monotone])
    except ValueError as error:
        raise Unreadable(str(error)) from None
    nodes = tuple(of_columns[j] for j in order)
    targets = tuple(_read_target(target, arrays) for target in stored.targets)
    return Preprocessing(schema, order, nodes, center, spread, targets)


def read_column(content: Any) -> ColumnSchema:
    """Read one column of a schema."""
    stored = fields(content, "a column", **_COLUMN)
    if stored.levels is not None:
        if not stored.levels or len(set(stored.levels)) != len(stored.levels):
            raise Unreadable(f"column {stored.name!r} has no levels, or duplicate levels")
        stored.levels = tuple(stored.levels)
    if stored.kind == "categorical" and len(stored.levels or ()) < 2:
        raise Unreadable(f"column {stored.name!r} is categorical, but has fewer than two levels")
    stored.seasons = tuple(stored.seasons)
    if stored.seasons and (stored.kind, stored.holds, stored.levels) != ("numeric", "dates", None):
        raise Unreadable(f"column {stored.name!r} has seasons, but does not contain dates")
    if len(set(stored.seasons)) != len(stored.seasons):
        raise Unreadable(f"column {stored.name!r} has duplicate seasons")
    if stored.kind == "unusable" and not (stored.constant and stored.holds == "nothing" and stored.levels is None):
        raise Unreadable(f"column {stored.name!r} is unusable, but has values or levels")
    return ColumnSchema(**vars(stored))


def _read_target(content: Any, arrays: StoredArrays) -> Target:
    if isinstance(content, dict) and "classes" not in content:
        stored = fields(content, "a target", **_NUMERIC_TARGET)
        if stored.spread <= 0:
            raise Unreadable(f"target {stored.name!r} has a spread that is not positive")
        loss = read_value(stored.loss, arrays)
        if not isinstance(loss, TargetLoss | None):
            raise Unreadable(f"target {stored.name!r} has an invalid loss")
        return NumericTarget(stored.name, stored.center, stored.spread, loss)
    stored = fields(content, "a target", name=str, classes=object)
    classes = read_value(stored.classes, arrays)
    if type(classes) is not np.ndarray or classes.ndim != 1 or len(classes) < 2 or not all(classes[:-1] < classes[1:]):
        raise Unreadable(f"target {stored.name!r} has invalid classes")
    return ClassTarget(stored.name, classes)


def write_networks(networks: Networks, arrays: Arrays, folder: str = "networks") -> dict[str, Any]:
    """Return the form of the networks as JSON; weights and scales are added to the arrays, prefixed by ``folder``."""
    parameters = networks.parameters
    weights = parameters._asdict() | networks.standardization._asdict()
    activation, embedding = weights.pop("activation"), weights.pop("embedding")
    for m, layer in enumerate(weights.pop("hidden")):
        weights |= {f"hidden/{m}/{name}": array for name, array in layer._asdict().items()}
    if embedding is not None:
        weights |= {f"embedding/{name}": getattr(embedding, name) for name in _EMBEDDING}
    for name, array in weights.items():
        if array is None:
            continue
        if not np.isfinite(array).all():
            raise ValueError(f"the model's {name} are not finite, so it cannot predict; fit it again")
        arrays[f"{folder}/{name}"] = array
    return {
        "members": networks.n_members,
        "all_nodes": networks.has_all_nodes,
        "linear": parameters.output_weights is None,
        "hidden_layers": len(parameters.hidden),
        "activation": activation.name,
        "embedding": networks.layout.embedding,
    }


_EMBEDDING = ("frequencies", "phases", "weights")


def read_networks(
    content: Any, preprocessing: Preprocessing, arrays: StoredArrays, folder: str = "networks"
) -> Networks:
    """Undo :func:`write_networks`."""
    kinds = {"members": int, "all_nodes": bool, "linear": bool, "hidden_layers": int, "embedding": int}
    form = fields(content, "its networks", **kinds, activation=ActivationName)
    if not 0 <= form.embedding <= MOST_EMBEDDED:
        raise Unreadable(f"its networks compute {form.embedding} inputs per number; the limit is {MOST_EMBEDDED}")
    layout = replace(preprocessing.layout, embedding=form.embedding)
    n_nodes = layout.n_nodes if form.all_nodes else len(layout.targets)

    def take(name: str, *shape: int | None) -> Any:
        return arrays.take(f"{folder}/{name}", np.float32, (form.members, *shape), finite=True)

    inputs = take("input_weights", layout.n_inputs, n_nodes, layout.output_width if form.linear else None)
    width = inputs.shape[-1]
    bias, hidden = take("input_bias", n_nodes, width), []
    for m in range(form.hidden_layers):
        weights = take(f"hidden/{m}/weights", width, None)
        width = weights.shape[-1]
        hidden.append(Dense(weights, take(f"hidden/{m}/bias", width)))
    if form.members < 1 or width < 1 or (form.linear and hidden):
        raise Unreadable(f"{form.members} networks with {len(hidden)} hidden layers of width {width} are invalid")
    embedding, n_embedded = None, len(layout.embedded_nodes)
    if n_embedded:
        frequencies = take("embedding/frequencies", n_embedded, None)
        waves = frequencies.shape[-1]
        mixed = take("embedding/weights", n_embedded, waves, form.embedding)
        embedding = Embedding(frequencies, take("embedding/phases", n_embedded, waves), mixed, value_channels(layout))
    parameters = Parameters(
        inputs,
        bias,
        tuple(hidden),
        None if form.linear else take("output_weights", n_nodes, width, layout.output_width),
        None if form.linear else take("output_bias", n_nodes, layout.output_width),
        embedding,
        Activation(form.activation),
    )
    clipped, all_squared = layout.is_clipped.any(), layout.is_squared.all()
    standardization = Standardization(
        take("shift", layout.n_channels),
        take("scale", layout.n_channels),
        take("clip_center", layout.n_channels) if clipped else None,
        take("clip_rate", layout.n_channels) if clipped else None,
        None if all_squared else take("null_loss", layout.n_nodes),
    )
    return Networks(preprocessing, parameters, standardization)


def write_blend(blend: Blend, arrays: Arrays) -> dict[str, Any]:
    """Return the candidates of a blend as JSON and arrays."""
    arrays["blend/weights"] = blend.weights
    return {
        "names": list(blend.names),
        "parts": [write_networks(part, arrays, f"blend/{i}") for i, part in enumerate(blend.parts)],
    }


def read_blend(content: Any, networks: Networks, arrays: StoredArrays) -> Blend:
    """Undo :func:`write_blend`."""
    stored = fields(content, "its blend", names=list[str], parts=list)
    n = len(stored.parts)
    weights = arrays.take("blend/weights", np.float64, (n,), finite=True)
    if not n or len(stored.names) != n or (weights < 0).any() or not np.isclose(weights.sum(), 1):
        raise Unreadable(f"the names or weights of its blend do not match its {n} parts")
    parts = tuple(
        read_networks(part, networks.preprocessing, arrays, f"blend/{i}") for i, part in enumerate(stored.parts)
    )
    if any(part.n_members != networks.n_members for part in parts):
        raise Unreadable("the parts of its blend have different numbers of networks")
    return Blend(parts, weights, tuple(stored.names))
