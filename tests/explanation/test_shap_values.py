"""SHAP values: they add up, have a closed form for linear functions, and there is one for every column of the table."""

from __future__ import annotations

import sys
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

from castlereg import CastleClassifier, CastleMultiOutput, CastleRegressor, NetworkClassifier, explain
from tests.explanation.conftest import QUICK, linear_table, mixed_table


def test_without_the_package_the_error_says_what_to_install(linear_model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(ImportError, match=r"pip install 'castlereg\[shap\]'"):
        explain(linear_model, linear_table(5)[0], method="shap")


@pytest.fixture(scope="module")
def shap() -> Any:
    return pytest.importorskip("shap")


@pytest.mark.usefixtures("shap")
def test_values_of_a_linear_network_have_a_closed_form() -> None:
    """The coefficient times the distance from the mean of the background."""
    X, y = linear_table(300)
    model = CastleRegressor(0.001, **{**QUICK, "hidden_layer_sizes": ()}).fit(X, y)
    values = explain(model, X[:10], method="shap", background=X[50:90], n_repeats=1)
    origin = X[:1] * 0
    slopes = [float((model.predict(origin.assign(**{name: 1.0})) - model.predict(origin))[0]) for name in X]
    expected = (X[:10] - X[50:90].mean()) * slopes
    np.testing.assert_allclose(values.values_frame(), expected, atol=1e-9)
    assert values.values_frame().index.equals(X[:10].index)
    assert values.base == pytest.approx(model.predict(X[50:90]).mean())


@pytest.mark.usefixtures("shap")
@pytest.mark.parametrize("kind", ["numbers", "classes", "two classes", "several"])
def test_values_and_base_add_up_to_the_prediction(kind: str) -> None:
    X, targets = mixed_table()
    if kind == "numbers":
        model: Any = CastleRegressor(**QUICK).fit(X, targets["size"])
        predicted = model.predict(X[:12])[:, None]
    elif kind == "several":
        model = CastleMultiOutput(**QUICK).fit(X, targets)
        predicted = np.column_stack([model.predict(X[:12])["size"], model.predict_proba(X[:12])["kind"]])
    else:
        y = targets["kind"] if kind == "classes" else targets["kind"] == "large"
        model = CastleClassifier(**QUICK).fit(X, y)
        predicted = model.predict_proba(X[:12])
    values = explain(model, X[:12], method="shap", n_repeats=2)
    assert values.values.shape == (12, 4, predicted.shape[1])
    np.testing.assert_allclose(values.predicted, predicted, atol=1e-9)
    expected = {
        "numbers": ("size",),
        "classes": ("large", "medium", "small"),
        "two classes": ("False", "True"),
        "several": ("size", "kind: large", "kind: medium", "kind: small"),
    }
    assert values.outputs == expected[kind]
    assert values.cells["city"][1:3].tolist() == X["city"][1:3].tolist()
    assert values.cells["built"].iloc[0] == X["built"].iloc[0]


@pytest.mark.usefixtures("shap")
def test_text_and_columns_in_small_units_have_their_parts() -> None:
    X, targets = mixed_table(400)
    model = CastleRegressor(**QUICK).fit(X, targets["size"])
    frame = explain(model, X[:20], method="shap", n_repeats=2).to_frame()
    assert set(frame["column"][:2]) == {"city", "tiny"}
    assert (frame["importance"][:2] > 0.3).all()


@pytest.mark.usefixtures("shap")
def test_a_row_has_the_same_bits_whatever_is_beside_it(linear_model: Any) -> None:
    X, _ = linear_table(40)
    state = np.random.get_state()[1].copy()  # type: ignore[union-attr, index]
    together = explain(linear_model, X[:6], method="shap", background=X)
    alone = explain(linear_model, X[4:5], method="shap", background=X)
    np.testing.assert_array_equal(together.values[4:5], alone.values)
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # type: ignore[index]
    spaced = explain(linear_model, X, method="shap", background=4)
    given = explain(linear_model, X, method="shap", background=X.iloc[[0, 13, 26, 39]])
    np.testing.assert_array_equal(spaced.values, given.values)


def test_pictures(shap: Any) -> None:
    mpl.use("agg")
    X, targets = mixed_table()
    classes = explain(NetworkClassifier(**QUICK).fit(X, targets["kind"]), X[:8], method="shap", n_repeats=1)
    ax = classes.plot()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["large", "medium", "small"]
    np.testing.assert_allclose(
        sorted(bar.get_width() for bar in ax.patches), np.sort(np.abs(classes.values).mean(axis=0).ravel())
    )
    assert classes.plot(output="small").get_xlabel().endswith("the probability of small")
    several = explain(CastleMultiOutput(**QUICK).fit(X, targets), X[:8], method="shap", n_repeats=1)
    with pytest.raises(ValueError, match=r"several outputs; pass output=..., one of 'size', 'kind: large'"):
        several.plot()
    with pytest.raises(ValueError, match="output='price' is unknown"):
        several.values_frame("price")
    theirs = several.to_shap("size")
    assert isinstance(theirs, shap.Explanation)
    np.testing.assert_array_equal(theirs.values, several.values[:, :, 0])
    assert theirs.display_data[1, 0] == X["city"][1]
    plt.close("all")


@pytest.mark.usefixtures("shap")
def test_background_is_a_number_or_a_table(linear_model: Any) -> None:
    with pytest.raises(ValueError, match="background=0"):
        explain(linear_model, linear_table(5)[0], method="shap", background=0)
    with pytest.raises(ValueError, match="feature"):
        explain(linear_model, linear_table(5)[0], method="shap", background=linear_table(3)[0][["a", "b"]])
