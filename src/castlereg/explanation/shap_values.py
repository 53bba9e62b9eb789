"""SHAP values: the prediction of a row as the mean prediction plus one part per column, from the package shap."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tqdm.auto import tqdm

from castlereg.explanation.bars import draw_bars
from castlereg.fitted.model import FittedModel
from castlereg.table.preprocessing import Preprocessing
from castlereg.table.targets import NumericTarget, Target

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROWS_AT_ONCE = 50_000


@dataclass(frozen=True, eq=False)
class ShapValues:
    """Predictions of rows, split into one part per column.

    The prediction for a row is ``base + values[row].sum(axis=0)``: the value of a numeric target, in its own unit, or
    the probability of each class.

    Attributes
    ----------
    columns : tuple of str
    targets : tuple of str
        The target of each output.
    outputs : tuple of str
        Names of the outputs: the target if it is numeric, otherwise each class, or ``target: class`` if there are
        several targets.
    values : array of shape (rows, columns, outputs)
    base : array of shape (outputs,)
        Mean prediction of the background rows.
    cells : DataFrame
        The explained rows, with levels as text and dates as dates.
    """

    columns: tuple[str, ...]
    targets: tuple[str, ...]
    outputs: tuple[str, ...]
    values: NDArray[np.float64] = field(repr=False)
    base: NDArray[np.float64] = field(repr=False)
    cells: pd.DataFrame = field(repr=False)

    @property
    def predicted(self) -> NDArray[np.float64]:
        """Predictions of the model, shape (rows, outputs)."""
        return self.base + self.values.sum(axis=1)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per output and column, the most important first.

        The frame has the columns ``output``, ``column``, and ``importance``, the mean absolute value over rows.
        """
        frames = []
        for output, importances in zip(self.outputs, np.abs(self.values).mean(axis=0).T, strict=True):
            frame = pd.DataFrame({"output": output, "column": self.columns, "importance": importances})
            frames.append(frame.sort_values("importance", ascending=False, kind="stable"))
        return pd.concat(frames, ignore_index=True)

    def values_frame(self, output: str | None = None) -> pd.DataFrame:
        """Return the values of one output, with the rows and columns of the table.

        Parameters
        ----------
        output : str, optional
            One of ``outputs``; by default the only one, or the second of two classes.
        """
        values = self.values[:, :, self._position(output)]
        return pd.DataFrame(values, columns=list(self.columns), index=self.cells.index)

    def plot(self, ax: Axes | None = None, *, output: str | None = None, most: int = 20) -> Axes:
        """Draw the mean absolute value of each column. Needs ``castlereg[plot]``.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default new axes.
        output : str, optional
            One of ``outputs``; by default the only one, the second of two classes, or all classes stacked.
        most : int
            Maximum number of columns; the most important are drawn.
        """
        stacked = output is None and len(self.outputs) > 2 and len(set(self.targets)) == 1
        chosen = list(range(len(self.outputs))) if stacked else [self._position(output)]
        lengths = np.abs(self.values[:, :, chosen]).mean(axis=0)
        order = np.argsort(-lengths.sum(axis=1), kind="stable")
        name, target = self.outputs[chosen[0]], self.targets[chosen[0]]
        of = f"each {target}" if stacked else name
        label = f"mean |SHAP value| for {of if name == target else f'the probability of {of}'}"
        names = [self.outputs[k] for k in chosen]
        return draw_bars([self.columns[j] for j in order], list(lengths[order].T), label, ax, most, names=names)

    def to_shap(self, output: str | None = None) -> Any:
        """Return the values of one output as ``shap.Explanation``, for the plots of the package shap.

        Parameters
        ----------
        output : str, optional
            As in :meth:`values_frame`.
        """
        k = self._position(output)
        numbers = [
            column.to_numpy(np.float64) if pd.api.types.is_numeric_dtype(column) else pd.factorize(column, sort=True)[0]
            for _, column in self.cells.items()
        ]
        return _shap().Explanation(
            self.values[:, :, k],
            np.full(len(self.values), self.base[k]),
            np.column_stack(numbers),
            display_data=self.cells.to_numpy(object),
            feature_names=list(self.columns),
        )

    def _position(self, output: str | None) -> int:
        """Return the position of an output; by default of the only one, or of the second of two classes."""
        if output is None and len(set(self.targets)) == 1 and len(self.outputs) <= 2:
            return len(self.outputs) - 1
        if output not in self.outputs:
            problem = "there are several outputs" if output is None else f"output={output!r} is unknown"
            raise ValueError(f"{problem}; pass output=..., one of {', '.join(map(repr, self.outputs))}")
        return self.outputs.index(output)

    def __str__(self) -> str:
        return str(self.to_frame().to_string(index=False, float_format="{:.4g}".format))


def shap_values(
    model: FittedModel,
    cells: NDArray[np.float64],
    background: NDArray[np.float64],
    n_repeats: int,
    seed: int,
    verbose: bool,
    index: pd.Index | None = None,
) -> ShapValues:
    """Compute the SHAP values of cells, shape (rows, columns).

    Every row is explained with the same seed, so its values do not depend on the other rows. The package shap treats
    nearly equal values as the same, regardless of the unit of the column. So it gets the rank of each cell among the
    values of its column, missing values included.
    """
    shap = _shap()
    targets, outputs = _outputs(model.targets)
    numbered = [np.unique(column, return_inverse=True) for column in np.concatenate([cells, background]).T]
    codes = np.column_stack([codes for _, codes in numbered]).astype(np.float64)

    def predict(coded: NDArray[np.float64]) -> NDArray[np.float64]:
        ranks = coded.astype(np.int64)
        decoded = np.column_stack([values[ranks[:, j]] for j, (values, _) in enumerate(numbered)])
        return np.column_stack(model.predict_cells(decoded))

    rows, behind = codes[: len(cells)], codes[len(cells) :]
    values = np.empty((len(rows), codes.shape[1], len(outputs)))
    masker = shap.maskers.Independent(behind, max_samples=len(behind))
    options = {"max_evals": n_repeats * (2 * codes.shape[1] + 1), "batch_size": max(1, _ROWS_AT_ONCE // len(behind))}
    with tqdm(total=len(rows), desc="SHAP values", unit="row", delay=2, disable=not verbose) as bar:
        for number, row in enumerate(rows):
            with _global_seed(seed):
                explained = shap.PermutationExplainer(predict, masker, seed=seed)(row[None], silent=True, **options)
            values[number] = explained.values[0].reshape(codes.shape[1], len(outputs))
            bar.update()
    base = predict(behind).mean(axis=0)
    columns = tuple(column.name for column in model.preprocessing.schema)
    return ShapValues(columns, targets, outputs, values, base, _shown(model.preprocessing, cells, index))


def _shap() -> Any:
    try:
        with warnings.catch_warnings():  # its imports may raise deprecation warnings
            warnings.simplefilter("ignore", DeprecationWarning)
            warnings.simplefilter("ignore", PendingDeprecationWarning)
            import shap
    except ImportError:
        raise ImportError("SHAP values need the package shap: pip install 'castlereg[shap]'") from None
    return shap


@contextmanager
def _global_seed(seed: int) -> Iterator[None]:
    """Set NumPy's global random state, which shap draws from, and restore it afterwards."""
    state = np.random.get_state()
    np.random.seed(seed)
    try:
        yield
    finally:
        np.random.set_state(state)


def _outputs(targets: Sequence[Target]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the target and the name of every output."""
    pairs = []
    for target in targets:
        if isinstance(target, NumericTarget):
            pairs.append((target.name, target.name))
        else:
            start = f"{target.name}: " if len(targets) > 1 else ""
            pairs += [(target.name, f"{start}{label}") for label in target.classes]
    return tuple(target for target, _ in pairs), tuple(name for _, name in pairs)


def _shown(preprocessing: Preprocessing, cells: NDArray[np.float64], index: pd.Index | None) -> pd.DataFrame:
    """Convert cells to a readable frame, with levels by their names and dates as dates."""
    columns: dict[str, Any] = {}
    for column, values in zip(preprocessing.schema, cells.T, strict=True):
        if column.is_coded and column.levels is not None:
            names = np.array([*column.levels, "unknown", None], object)
            codes = np.where(np.isnan(values), len(names) - 1, np.where(values < 0, len(names) - 2, values))
            columns[column.name] = names[codes.astype(np.int64)]
        elif column.holds == "dates":
            columns[column.name] = pd.to_datetime(values, unit="D").round("s")
        else:
            columns[column.name] = values
    return pd.DataFrame(columns, index=index)
