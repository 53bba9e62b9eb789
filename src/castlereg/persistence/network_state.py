"""Trained networks, written and read: weights and the members' own scales, of the shapes that the layout needs."""

from __future__ import annotations

from typing import Any

import numpy as np

from castlereg.data.preprocessing import Preprocessing
from castlereg.data.scaling import Standardization
from castlereg.estimators.fitted_network import FittedNetwork
from castlereg.network import Dense, Parameters
from castlereg.persistence.arrays import ArrayReader, ArrayWriter
from castlereg.persistence.json_content import Content
from castlereg.persistence.refusal import Unreadable


def write_networks(network: FittedNetwork, where: str, arrays: ArrayWriter) -> dict[str, Any]:
    """Write a stack of networks.

    Parameters
    ----------
    network : FittedNetwork
        Its preprocessing is written elsewhere.
    where : str
        Before the names of the arrays.
    arrays : ArrayWriter

    Returns
    -------
    dict
    """
    parameters = network.parameters
    fields = {
        "input_weights": parameters.input_weights,
        "input_bias": parameters.input_bias,
        "output_weights": parameters.output_weights,
        "output_bias": parameters.output_bias,
        **network.standardization._asdict(),
    }
    for m, layer in enumerate(parameters.hidden):
        fields |= {f"hidden/{m}/weights": layer.weights, f"hidden/{m}/bias": layer.bias}
    for name, array in fields.items():
        if array is None:
            continue
        if not np.isfinite(array).all():
            raise ValueError(f"the model's {name} are not finite, so it cannot predict: fit it anew")
        arrays.add(f"{where}/{name}", array)
    return {
        "members": network.n_members,
        "all_nodes": network.has_all_nodes,
        "linear": parameters.output_weights is None,
        "hidden_layers": len(parameters.hidden),
    }


def read_networks(content: Content, where: str, coding: Preprocessing, arrays: ArrayReader) -> FittedNetwork:
    """Undo :func:`write_networks`.

    Parameters
    ----------
    content : Content
    where : str
    coding : Preprocessing
    arrays : ArrayReader

    Returns
    -------
    FittedNetwork
    """
    content.only("members", "all_nodes", "linear", "hidden_layers")
    layout = coding.layout
    members = content.integer("members")
    n_nodes = layout.n_nodes if content.flag("all_nodes") else len(layout.targets)
    outputs = layout.output_width

    def take(name: str, *shape: int | None) -> Any:
        return arrays.take_finite(f"{where}/{name}", np.float32, (members, *shape))

    linear = content.flag("linear")
    inputs = take("input_weights", layout.n_channels, n_nodes, outputs if linear else None)
    width = inputs.shape[-1]
    bias, hidden = take("input_bias", n_nodes, width), []
    for m in range(content.integer("hidden_layers")):
        layer = Dense(take(f"hidden/{m}/weights", width, None), None)  # type: ignore[arg-type]
        width = layer.weights.shape[-1]
        hidden.append(layer._replace(bias=take(f"hidden/{m}/bias", width)))
    if members < 1 or width < 1 or (linear and hidden):
        raise Unreadable(f"it has {members} networks of {len(hidden)} hidden layers of width {width}")
    parameters = Parameters(
        inputs,
        bias,
        tuple(hidden),
        None if linear else take("output_weights", n_nodes, width, outputs),
        None if linear else take("output_bias", n_nodes, outputs),
    )
    clipped, all_numeric = bool(layout.is_clipped.any()), bool(layout.is_kind("numeric").all())
    standardization = Standardization(
        take("shift", layout.n_channels),
        take("scale", layout.n_channels),
        take("clip_center", layout.n_channels) if clipped else None,
        take("clip_rate", layout.n_channels) if clipped else None,
        None if all_numeric else take("null_loss", layout.n_nodes),
    )
    return FittedNetwork(parameters, standardization, coding)
