"""Convert a fitted structural model to JSON and arrays and back: columns, rows, graph, and equations."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Literal

import numpy as np
import pandas as pd

from castlereg.causal.structural import FittedWorld
from castlereg.causal.structural.fitting import Draw
from castlereg.causal.structural.learned import NETWORK, LearnedEquation, LearnedSystem
from castlereg.causal.structural.model import Population
from castlereg.causal.structural.smooth import Basis, SmoothSum
from castlereg.causal.structural.subnetworks import Encoding, SubNetwork
from castlereg.causal.structural.system import causal_order
from castlereg.causal.structural.variables import Variable
from castlereg.network import Dense, Parameters
from castlereg.persistence import result_state
from castlereg.persistence.container import Arrays, StoredArrays
from castlereg.persistence.json_content import Unreadable, checked, fields
from castlereg.persistence.predictor_state import read_column
from castlereg.persistence.values import read_value, write_value
from castlereg.table.table import Standardization

_FIELDS: dict[str, Any] = {
    **{"variables": list, "graph": dict, "given": bool, "fixed": dict, "residuals": list[int], "equations": list},
    **{"systems": list, "draws": list, "encodings": list},
}
_EQUATION: dict[str, Any] = {
    **{"node": int, "parents": list[int], "form": Literal["sum of functions", "network"]},
    **{"residuals": int | None, "encoding": int | None},
}
_BASIS = ("knots", "features", "penalties")
_LAYERS = ("input_weights", "input_bias", "output_weights", "output_bias")
_SCALES = ("shift", "scale", "null_loss")


class _Numbered(dict[int, int]):
    """Numbers of objects, in the order in which the objects first appear."""

    def __init__(self) -> None:
        self.objects: list[Any] = []

    def of(self, item: Any) -> int:
        if id(item) not in self:
            self[id(item)] = len(self.objects)
            self.objects.append(item)
        return self[id(item)]


def write_world(world: FittedWorld, arrays: Arrays) -> dict[str, Any]:
    """Return a fitted structural model as JSON and arrays, including the rows over which answers are averaged."""
    equations, systems, residuals, encodings = _Numbered(), _Numbered(), _Numbered(), _Numbered()
    systems.of(world.system)
    draws = [[systems.of(draw.whole), systems.of(draw.resampled)] for draw in world.draws]
    nodes: dict[int, int] = {}
    for system in systems.objects:
        for node, equation in enumerate(system.equations):
            nodes[equations.of(equation)] = node
    arrays |= {
        "world/values": world.population.values,
        "world/weight": world.population.weight,
        "world/draws": np.array([draw.weight for draw in world.draws]).reshape(len(draws), -1).astype(np.int32),
    }
    for k, basis in enumerate(world.system.bases):
        arrays |= {f"world/basis/{k}/{name}": getattr(basis, name) for name in _BASIS}
    written, weights = [], []
    for number, equation in enumerate(equations.objects):
        encoding = None
        if isinstance(equation.function, SubNetwork):
            encoding = encodings.of(equation.function.encoding)
            _write_network(equation.function, arrays, f"world/network/{number}")
        else:
            weights.append(equation.function.weights.ravel())
        written.append(
            {
                "node": nodes[number],
                "parents": list(equation.parents),
                "form": equation.form,
                "residuals": None if equation.residuals is None else residuals.of(equation.residuals),
                "encoding": encoding,
            }
        )
    arrays["world/weights"] = np.concatenate([np.empty(0), *weights])
    arrays["world/residuals"] = np.concatenate([np.empty(0), *residuals.objects])
    for number, of_node in enumerate(encodings.objects):
        arrays |= {f"world/encoding/{number}/{name}": getattr(of_node, name) for name in ("center", "spread")}
    variable_of = {variable.name: variable for variable in world.variables}
    return {
        "variables": [_write_variable(variable, arrays) for variable in world.variables],
        "graph": result_state.write_graph(world.causal_graph, arrays),
        "given": world.is_graph_given,
        "fixed": {name: variable_of[name].code(value) for name, value in world.fixed.items()},
        "residuals": [len(pool) for pool in residuals.objects],
        "equations": written,
        "systems": [[equations.of(equation) for equation in system.equations] for system in systems.objects],
        "draws": draws,
        "encodings": [{"node": e.node, "missing": list(e.missing)} for e in encodings.objects],
    }


def read_world(content: Any, arrays: StoredArrays) -> FittedWorld:
    """Undo :func:`write_world`."""
    stored = fields(content, "its structural model", **_FIELDS)
    variables = tuple(_read_variable(variable, arrays) for variable in stored.variables)
    n = len(variables)
    if not n or len({variable.name for variable in variables}) != n:
        raise Unreadable("it has no columns, or duplicate column names")
    values = arrays.take("world/values", np.float64, (n, None))
    n_rows = values.shape[1]
    weight = arrays.take("world/weight", np.float64, (n_rows,), finite=True)
    if not n_rows or (weight < 0).any() or not weight.any():
        raise Unreadable("it has no rows, or its row weights are negative or all zero")
    _check_levels(values, variables)
    bases = tuple(_read_basis(variable, arrays, f"world/basis/{k}") for k, variable in enumerate(variables))
    encodings = [_read_encoding(encoding, variables, arrays, i) for i, encoding in enumerate(stored.encodings)]
    equations = _read_equations(stored, variables, bases, encodings, arrays)
    systems = []
    for numbers in stored.systems:
        chosen = [equations[i] for i in checked(numbers, list[int], "a system")]
        if [node for node, _ in chosen] != list(range(n)):
            raise Unreadable("a system must have one equation for every column")
        systems.append(LearnedSystem(tuple(equation for _, equation in chosen), bases))
        causal_order(systems[-1].edges)  # raises for a cycle
    drawn = arrays.take("world/draws", np.int32, (len(stored.draws), n_rows if stored.draws else None))
    draws = []
    for pair, counts in zip(stored.draws, drawn, strict=True):
        whole, resampled = checked(pair, list[int], "a draw")
        if (counts < 0).any():
            raise Unreadable("a draw has negative row counts")
        draws.append(Draw(systems[whole], systems[resampled], counts.astype(np.float64)))
    graph = result_state.read_graph(stored.graph, n, arrays)
    if list(graph.names) != [variable.name for variable in variables]:
        raise Unreadable("its graph does not match its columns")
    if not np.array_equal(graph.edge_array, systems[0].edges):
        raise Unreadable("its graph does not match its equations")
    fixed = {name: _read_fixed(name, code, variables) for name, code in stored.fixed.items()}
    arrays.finish()
    return FittedWorld(variables, systems[0], tuple(draws), Population(values, weight), graph, stored.given, fixed)


def _read_fixed(name: str, code: Any, variables: tuple[Variable, ...]) -> Any:
    """Convert the number of a held value to the value."""
    variable = next((variable for variable in variables if variable.name == name), None)
    n_levels = 0 if variable is None or variable.levels is None else len(variable.levels)
    if variable is None or (n_levels and checked(code, float, "a held value") not in range(n_levels)):
        raise Unreadable(f"it holds {name!r} at the invalid value {code!r}")
    return pd.Series(variable.decode(np.array([checked(code, float, "a held value")]))).tolist()[0]


def _write_variable(variable: Variable, arrays: Arrays) -> dict[str, Any]:
    return {
        "name": variable.name,
        "holds": variable.holds,
        "levels": None if variable.levels is None else write_value(list(variable.levels), arrays),
        "schema": None if variable.schema is None else asdict(variable.schema),
    }


def _read_variable(content: Any, arrays: StoredArrays) -> Variable:
    kinds: dict[str, Any] = {"name": str, "holds": Literal["numbers", "dates", "durations"], "schema": dict | None}
    stored = fields(content, "a column", **kinds, levels=object)
    schema = None if stored.schema is None else read_column(stored.schema)
    levels = None if stored.levels is None else tuple(checked(read_value(stored.levels, arrays), list, "its levels"))
    if levels is not None and (len(levels) < 1 or len(set(levels)) != len(levels)):
        raise Unreadable(f"column {stored.name!r} has no levels, or duplicate levels")
    if schema is not None and schema.levels is not None and schema.levels != levels:
        raise Unreadable(f"the levels of column {stored.name!r} do not match its schema")
    return Variable(stored.name, levels, stored.holds, schema)


def _check_levels(values: Any, variables: tuple[Variable, ...]) -> None:
    for column, variable in zip(values, variables, strict=True):
        codes = column[~np.isnan(column)]
        if np.isinf(codes).any():
            raise Unreadable(f"column {variable.name!r} has values that are not finite")
        if variable.levels is not None and not np.isin(codes, np.arange(len(variable.levels))).all():
            raise Unreadable(f"column {variable.name!r} has unknown levels in its rows")


def _read_basis(variable: Variable, arrays: StoredArrays, folder: str) -> Basis:
    knots = arrays.take(f"{folder}/knots", np.float64, (None,), finite=True)
    n_levels = 0 if variable.levels is None else len(variable.levels)
    if bool(n_levels) == bool(len(knots)) or (np.diff(knots) <= 0).any() or len(knots) == 1:
        raise Unreadable(f"the knots of column {variable.name!r} are invalid")
    features = arrays.take(
        f"{folder}/features", np.float64, (len(knots) + 1 if len(knots) else n_levels + 1, None), True
    )
    return Basis(knots, features, arrays.take(f"{folder}/penalties", np.float64, (features.shape[1],), finite=True))


def _read_encoding(content: Any, variables: tuple[Variable, ...], arrays: StoredArrays, number: int) -> Encoding:
    stored = fields(content, "an encoding", node=int, missing=list[bool])
    if stored.node >= len(variables) or len(stored.missing) != len(variables):
        raise Unreadable("an encoding does not match its columns")
    center, spread = (
        arrays.take(f"world/encoding/{number}/{name}", np.float64, (len(variables),), finite=True)
        for name in ("center", "spread")
    )
    return Encoding(variables, stored.node, center, spread, tuple(stored.missing))


def _read_equations(
    stored: Any,
    variables: tuple[Variable, ...],
    bases: tuple[Basis, ...],
    encodings: list[Encoding],
    arrays: StoredArrays,
) -> list[tuple[int, LearnedEquation]]:
    """Read the equations, each with its node."""
    pools = np.split(
        arrays.take("world/residuals", np.float64, (sum(stored.residuals),), finite=True),
        np.cumsum(stored.residuals)[:-1],
    )
    if 0 in stored.residuals:
        raise Unreadable("an equation has no residuals")
    weights, at = arrays.take("world/weights", np.float64, (None,), finite=True), 0
    equations = []
    for number, content in enumerate(stored.equations):
        written = fields(content, "an equation", **_EQUATION)
        n_levels, parents = len(variables[written.node].levels or ()), tuple(written.parents)
        residuals = None if written.residuals is None else pools[written.residuals]
        if (residuals is None) != bool(n_levels) or written.node in parents:
            raise Unreadable(f"the equation of {variables[written.node].name!r} does not match its column")
        function: SmoothSum | SubNetwork
        if written.form == NETWORK:
            encoding = encodings[written.encoding]
            if encoding.node != written.node:
                raise Unreadable("a network does not match its column")
            function = _read_network(encoding, arrays, f"world/network/{number}")
        else:
            shape = 1 + sum(bases[parent].n_features for parent in parents), max(n_levels, 1)
            size = shape[0] * shape[1]
            function = SmoothSum(tuple(bases[parent] for parent in parents), weights[at : at + size].reshape(shape))
            at += size
        equations.append((written.node, LearnedEquation(parents, function, residuals, n_levels, written.form)))
    if at != len(weights):
        raise Unreadable("some weights do not belong to any equation")
    return equations


def _write_network(network: SubNetwork, arrays: Arrays, folder: str) -> None:
    for name in _LAYERS:
        arrays[f"{folder}/{name}"] = getattr(network.parameters, name)
    for m, layer in enumerate(network.parameters.hidden):
        arrays |= {f"{folder}/hidden/{m}/{name}": np.asarray(array) for name, array in layer._asdict().items()}
    for name in _SCALES:
        if (scale := getattr(network.standardization, name)) is not None:
            arrays[f"{folder}/{name}"] = np.asarray(scale, np.float64)


def _read_network(encoding: Encoding, arrays: StoredArrays, folder: str) -> SubNetwork:
    layout = encoding.layout

    def take(name: str, *shape: int | None) -> Any:
        return arrays.take(f"{folder}/{name}", np.float64, shape, finite=True)

    inputs = take("input_weights", layout.n_inputs, 1, None)
    width = inputs.shape[-1]
    weights = take("hidden/0/weights", width, None)
    last = weights.shape[-1]
    parameters = Parameters(
        inputs,
        take("input_bias", 1, width),
        (Dense(weights, take("hidden/0/bias", last)),),
        take("output_weights", 1, last, layout.output_width),
        take("output_bias", 1, layout.output_width),
    )
    null_loss = None if layout.is_kind("numeric").all() else take("null_loss", layout.n_nodes)
    scales = take("shift", layout.n_channels), take("scale", layout.n_channels)
    return SubNetwork(encoding, parameters, Standardization(*scales, None, None, null_loss))
