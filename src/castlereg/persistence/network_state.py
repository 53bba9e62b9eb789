"""Trained networks: weights and the members' own scales, of the shapes that the layout needs."""

from __future__ import annotations

from typing import Any

import numpy as np

from castlereg.data.preprocessing import Preprocessing
from castlereg.data.table import Standardization
from castlereg.fitted import Networks
from castlereg.network import Dense, Parameters
from castlereg.persistence.container import Arrays, StoredArrays
from castlereg.persistence.errors import Unreadable
from castlereg.persistence.json_content import fields


def write_networks(networks: Networks, arrays: Arrays) -> dict[str, Any]:
    """Return the form of the networks as JSON; weights and scales are added to the arrays."""
    parameters = networks.parameters
    weights = {**parameters._asdict(), **networks.standardization._asdict()}
    del weights["hidden"]
    for m, layer in enumerate(parameters.hidden):
        weights |= {f"hidden/{m}/weights": layer.weights, f"hidden/{m}/bias": layer.bias}
    for name, array in weights.items():
        if array is None:
            continue
        if not np.isfinite(array).all():
            raise ValueError(f"the model's {name} are not finite, so it cannot predict: fit it again")
        arrays[f"networks/{name}"] = array
    return {
        "members": networks.n_members,
        "all_nodes": networks.has_all_nodes,
        "linear": parameters.output_weights is None,
        "hidden_layers": len(parameters.hidden),
    }


def read_networks(content: Any, preprocessing: Preprocessing, arrays: StoredArrays) -> Networks:
    """Undo :func:`write_networks`."""
    form = fields(content, "its networks", members=int, all_nodes=bool, linear=bool, hidden_layers=int)
    layout = preprocessing.layout
    n_nodes = layout.n_nodes if form.all_nodes else len(layout.targets)

    def take(name: str, *shape: int | None) -> Any:
        return arrays.take(f"networks/{name}", np.float32, (form.members, *shape), finite=True)

    inputs = take("input_weights", layout.n_channels, n_nodes, layout.output_width if form.linear else None)
    width = inputs.shape[-1]
    bias, hidden = take("input_bias", n_nodes, width), []
    for m in range(form.hidden_layers):
        weights = take(f"hidden/{m}/weights", width, None)
        width = weights.shape[-1]
        hidden.append(Dense(weights, take(f"hidden/{m}/bias", width)))
    if form.members < 1 or width < 1 or (form.linear and hidden):
        raise Unreadable(f"it has {form.members} networks of {len(hidden)} hidden layers of width {width}")
    parameters = Parameters(
        inputs,
        bias,
        tuple(hidden),
        None if form.linear else take("output_weights", n_nodes, width, layout.output_width),
        None if form.linear else take("output_bias", n_nodes, layout.output_width),
    )
    clipped, all_numeric = bool(layout.is_clipped.any()), bool(layout.is_kind("numeric").all())
    standardization = Standardization(
        take("shift", layout.n_channels),
        take("scale", layout.n_channels),
        take("clip_center", layout.n_channels) if clipped else None,
        take("clip_rate", layout.n_channels) if clipped else None,
        None if all_numeric else take("null_loss", layout.n_nodes),
    )
    return Networks(preprocessing, parameters, standardization)
