"""Beyond the paper: tree models and, if installed, tuned networks on the same tables, rows and folds."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from castlereg.comparison.run import held_out_splits
from castlereg.paper.datasets import load
from castlereg.paper.experiments.description import Experiment, Record, Scale, Settings, Verdict
from castlereg.paper.experiments.real_classification import RealClassification
from castlereg.paper.experiments.real_regression import RealRegression
from castlereg.paper.experiments.real_tables import RealTables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TASKS: dict[str, RealTables] = {"regression": RealRegression(), "classification": RealClassification()}
_OURS = ("Baseline", "CASTLE")
_STANDARD_SPLITS = 1


def _forest(task: str) -> Any:
    make = RandomForestRegressor if task == "regression" else RandomForestClassifier
    return make_pipeline(_numbered(), make(300, random_state=0, n_jobs=1))


def _boosting(task: str) -> Any:
    make = HistGradientBoostingRegressor if task == "regression" else HistGradientBoostingClassifier
    return make_pipeline(_numbered(), make(random_state=0, early_stopping=True))


def _numbered() -> Any:
    """Encode text levels as numbers; numbers and missing values stay unchanged, as both kinds of trees support them."""
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    text = make_column_selector(dtype_exclude="number")
    return make_column_transformer((encoder, text), remainder="passthrough")


def _catboost(task: str) -> Any:
    catboost: Any = import_module("catboost")

    make = catboost.CatBoostRegressor if task == "regression" else catboost.CatBoostClassifier
    return make_pipeline(_numbered(), make(random_seed=0, verbose=False, thread_count=1))


def _of_pytabkit(name: str) -> Callable[[str], Any]:
    def make(task: str) -> Any:
        return getattr(import_module("pytabkit"), f"{name}_{'Regressor' if task == 'regression' else 'Classifier'}")(
            random_state=0
        )

    return make


MODELS: dict[str, tuple[Callable[[str], Any], str]] = {
    "random forest": (_forest, "sklearn"),
    "gradient boosting": (_boosting, "sklearn"),
    "CatBoost": (_catboost, "catboost"),
    "RealMLP": (_of_pytabkit("RealMLP_TD"), "pytabkit"),
    "TabM": (_of_pytabkit("TabM_D"), "pytabkit"),
}


class TreeModels(Experiment):
    """Other models with default settings, trained on the training rows of each fold."""

    name = "tree_models"
    title = "Comparison with tree models and tuned networks"
    shown_in = "beyond the paper"
    sources = ("real_regression", "real_classification")

    def units(self, scale: Scale) -> list[Settings]:
        """List table x split x model, for the installed packages."""
        models = [name for name, (_, package) in MODELS.items() if find_spec(package)]
        units: list[Settings] = []
        for task, real in _TASKS.items():
            cases = {(u["table"], u["variant"], u["split"], u["cv"]) for u in real.units(scale)}
            if scale == "standard":
                cases = {case for case in cases if int(case[2]) < _STANDARD_SPLITS}
            units += [
                {"table": table, "variant": variant, "split": split, "cv": cv, "task": task, "model": model}
                for table, variant, split, cv in sorted(cases, key=str)
                for model in models
            ]
        return units

    def measure(self, settings: Settings) -> list[Record]:
        """Train on every fold and score on the held-out rows."""
        data, task = load(str(settings["table"]), variant=str(settings["variant"])), str(settings["task"])
        (split,) = held_out_splits(
            data.X,
            data.y,
            task=task,  # type: ignore[arg-type]
            cv=int(settings["cv"]),
            n_splits=1,
            test_size=0.2,
            random_state=int(settings["split"]),
        )
        predicted = []
        for train, _ in split.folds:
            model = MODELS[str(settings["model"])][0](task).fit(data.X.iloc[train], data.y.iloc[train])
            held_out = data.X.iloc[split.test_rows]
            predicted.append(model.predict(held_out) if task == "regression" else model.predict_proba(held_out))
        truth, training = data.y.iloc[split.test_rows].to_numpy(), data.y.iloc[split.rest].to_numpy()
        scores = [_score(of_fold, truth, training, task) for of_fold in predicted]
        averaged = _score(np.mean(predicted, axis=0), truth, training, task)
        return [{"fold": fold, "score": score, "averaged": averaged} for fold, score in enumerate(scores)]

    def cost(self, settings: Settings) -> float:
        """Estimate from the table."""
        return 60 if settings["table"] in ("WQ", "CM") else 12

    def summary(self, results: pd.DataFrame) -> pd.DataFrame:
        """Return mean scores of single networks or models, and of the average of ten."""
        others = results[results["experiment"] == self.name]
        ours = results[results["method"].isin(_OURS)]
        ours = ours.assign(task=ours["experiment"].str.removeprefix("real_"), model=ours["method"])
        both = pd.concat([ours, others], ignore_index=True)
        groups = both.groupby(["task", "table", "model"], sort=False)
        frame = groups.agg(splits=("split", "nunique"), one=("score", "mean"), sd=("score", "std"))
        once = both.drop_duplicates(["task", "table", "model", "split"])
        frame["mean of ten"] = once.groupby(["task", "table", "model"], sort=False)["averaged"].mean()
        frame = frame.reset_index()
        sign = np.where(frame["task"] == "classification", -1, 1)
        frame["place"] = (frame["mean of ten"] * sign).groupby([frame["task"], frame["table"]]).rank().to_numpy()
        tables = {name: place for place, name in enumerate(dict.fromkeys(both["table"]))}
        models = {name: place for place, name in enumerate([*_OURS, *MODELS])}
        is_classification = frame["task"] == "classification"
        return frame.iloc[
            np.lexsort((frame["model"].map(models), frame["table"].map(tables), is_classification))
        ].reset_index(drop=True)

    def draw(self, results: pd.DataFrame) -> Figure:
        """Draw the score of the average of ten of each model, table by table."""
        import matplotlib.pyplot as plt

        frame = self.summary(results)
        tasks = list(dict.fromkeys(frame["task"]))
        figure, axes = plt.subplots(1, len(tasks), figsize=(5 * len(tasks), 3.8), layout="constrained", squeeze=False)
        for ax, task in zip(axes.flat, tasks, strict=True):
            scores = frame[frame["task"] == task].pivot_table(
                index="table", columns="model", values="mean of ten", sort=False
            )
            for model in scores:
                strong = model == "CASTLE"
                ax.plot(
                    scores.index, scores[model], "o" if strong else "s", ms=8 if strong else 5, alpha=0.8, label=model
                )
            ax.set(title=task, ylabel="MSE, standardized" if task == "regression" else "AUROC")
            ax.spines[["top", "right"]].set_visible(False)
        axes[0, 0].legend(frameon=False, fontsize=8)
        return figure

    def verdicts(self, results: pd.DataFrame) -> list[Verdict]:
        """Report the place of CASTLE among the other models."""
        frame = self.summary(results)
        places = frame.groupby("model")["place"].mean().sort_values()
        first = frame.loc[frame.groupby(["task", "table"])["place"].idxmin()]
        ahead = first[first["model"] == "CASTLE"]["table"]
        mean_places = ", ".join(f"{model} {place:.2f}" for model, place in places.items())
        return [
            Verdict(
                "averaged fold networks of CASTLE compared with averaged tree models",
                "not in the paper",
                f"best on {len(ahead)} of {len(first)} tables ({', '.join(ahead) or 'none'}); mean place (1 is "
                f"best): {mean_places}",
            )
        ]

    def notes(self) -> str:
        """Describe the comparison."""
        return (
            "Each model is trained ten times with its default settings, on the training rows of the ten folds; 'one' "
            "is the mean score of the single models, 'mean of ten' the score of their average. Lower MSE and higher "
            "AUROC are better."
        )


def _score(predicted: NDArray[np.float64], truth: NDArray[Any], training: NDArray[Any], task: str) -> float:
    if task == "regression":
        return float(np.mean((predicted - truth) ** 2) / np.var(training))
    if predicted.shape[1] == 2:
        return float(roc_auc_score(truth, predicted[:, 1]))
    return float(roc_auc_score(truth, predicted, multi_class="ovr", labels=np.unique(training)))
