"""Beyond the paper: tree models, the usual initialization, and the tables on which CASTLE pays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

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
from sklearn.tree import DecisionTreeRegressor

from castlereg_paper.advising import QUESTIONS, TableFacts, expected_gain, table_facts
from castlereg_paper.comparison import (
    METHODS,
    OURS,
    PAPER_METHODS,
    TWELVE,
    compare,
    method_scores,
    ranks_among,
    settings_of_folds,
)
from castlereg_paper.datasets import load
from castlereg_paper.experiments.figures import critical_difference
from castlereg_paper.experiments.tables import FOLD, PARTS, REAL_TABLES, RealClassification, RealRegression
from castlereg_paper.framework import Experiment, Record, Scale, Settings, Verdict
from castlereg_paper.problems import random_problem
from castlereg_paper.protocol import Candidates, Problem

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    sources = (RealRegression, RealClassification)
    explanation = (
        "Each model is trained ten times with its default settings, on the training rows of the ten folds; 'one' "
        "is the mean score of the single models, 'mean of ten' the score of their average. Lower MSE and higher "
        "AUROC are better."
    )

    def units(self, scale: Scale) -> list[Settings]:
        """List table x split x model, for the installed packages."""
        models = [name for name, (_, package) in MODELS.items() if find_spec(package)]
        units: list[Settings] = []
        for task, real in REAL_TABLES.items():
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
        data, task = load(str(settings["table"]), variant=str(settings["variant"])), str(settings["task"])
        problem = Problem.read(data.X, data.y, task, int(settings["split"]), {})
        (split,) = problem.splits(int(settings["cv"]), n_splits=1, test_size=0.2)
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
        return 60 if settings["table"] in ("WQ", "CM") else 12

    def summary(self, results: pd.DataFrame) -> pd.DataFrame:
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
        axes[0, 0].legend(frameon=False, fontsize=8)
        return figure

    def verdicts(self, results: pd.DataFrame) -> list[Verdict]:
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


def _score(predicted: NDArray[np.float64], truth: NDArray[Any], training: NDArray[Any], task: str) -> float:
    if task == "regression":
        return float(np.mean((predicted - truth) ** 2) / np.var(training))
    if predicted.shape[1] == 2:
        return float(roc_auc_score(truth, predicted[:, 1]))
    return float(roc_auc_score(truth, predicted, multi_class="ovr", labels=np.unique(training)))


class UsualStart(Experiment):
    """How much of the lead of CASTLE is due to the small initialization of the input layers, which CASTLE requires.

    According to the paper, all methods start from the same weights, but its networks may have used the usual
    initialization. Everything else is as in the experiments on real tables, whose scores are shown for comparison.
    """

    name = "usual_start"
    title = "Other methods with the usual initialization"
    shown_in = "beyond the paper"
    sources = (RealRegression, RealClassification)
    explanation = (
        "'usual' is the Glorot-uniform initialization of the input layers, 'small' the normal initialization with "
        "standard deviation 0.01 that all other experiments use for every method. Ranks compare CASTLE (small) "
        "with the other methods (usual), on the same rows and folds."
    )

    def units(self, scale: Scale) -> list[Settings]:
        """List the units of the real tables without CASTLE, with the usual initialization."""
        return [
            {**unit, "task": task, "input_init": "glorot"}
            for task, real in REAL_TABLES.items()
            for unit in real.units(scale)
            if unit["method"] not in ("CASTLE", *OURS)
            if scale != "quick" or task == "regression"
        ]

    def measure(self, settings: Settings) -> list[Record]:
        data = load(str(settings["table"]), variant=str(settings["variant"]))
        return method_scores(
            str(settings["method"]),
            data.X,
            data.y,
            task=str(settings["task"]),
            input_init=str(settings["input_init"]),
            **settings_of_folds(settings),
        )

    def cost(self, settings: Settings) -> float:
        return REAL_TABLES[str(settings["task"])].cost(settings)

    def _ranked(self, results: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
        """Rank CASTLE with its small initialization among the others with the usual one."""
        usual = results[results["experiment"] == self.name]
        castle = results[(results["experiment"] != self.name) & (results["method"] == "CASTLE")]
        castle = castle.assign(task=castle["experiment"].str.removeprefix("real_"))
        both = pd.concat([usual, castle], ignore_index=True)
        parts = [
            of_task.assign(rank=ranks_among(of_task, methods, FOLD, higher_is_better=task == "classification"))
            for task, of_task in both.groupby("task", sort=False)
        ]
        return pd.concat(parts, ignore_index=True).dropna(subset="rank")

    def summary(self, results: pd.DataFrame) -> pd.DataFrame:
        parts = [
            self._ranked(results, methods).groupby(["task", "table", "method"], sort=False)["rank"].mean()
            for methods in (METHODS, TWELVE)
        ]
        frame = pd.concat(parts, axis=1, keys=["rank of ten", "rank of twelve"])
        both = results.assign(task=results["task"].fillna(results["experiment"].str.removeprefix("real_")))
        for start, is_usual in (("small", False), ("usual", True)):
            scores = both[(both["experiment"] == self.name) == is_usual]
            means = scores.groupby(["task", "table", "method"])["score"].mean()
            frame.insert(frame.shape[1] - 2, start, means.reindex(frame.index))
        usual = both[both["experiment"] == self.name]
        frame.insert(0, "splits", usual.groupby(["task", "table", "method"])["split"].nunique().reindex(frame.index))
        return frame.reset_index()

    def draw(self, results: pd.DataFrame) -> Figure:
        import matplotlib.pyplot as plt

        ranked = self._ranked(results, TWELVE)
        tasks = list(dict.fromkeys(ranked["task"]))
        figure, axes = plt.subplots(1, len(tasks), figsize=(4.8 * len(tasks), 3.6), layout="constrained", squeeze=False)
        for ax, task in zip(axes.flat, tasks, strict=True):
            of_task = ranked[ranked["task"] == task]
            means = of_task.groupby(["table", "split", "method"], sort=False)["rank"].mean().unstack("method")
            critical_difference(ax, means.rank(axis=1, ascending=False), means.shape[1])
            ax.set_title(task)
        return figure

    def verdicts(self, results: pd.DataFrame) -> list[Verdict]:
        verdicts = []
        frame = self.summary(results)
        for name, methods in (("ten", METHODS), ("twelve", TWELVE)):
            for task, of_task in self._ranked(results, methods).groupby("task", sort=False):
                means = of_task.groupby("method")["rank"].mean().sort_values(ascending=False)
                place = int((means > means["CASTLE"]).sum()) + 1
                base = frame[(frame["task"] == task) & (frame["method"] == "Baseline")].set_index("table")
                worse = (base["usual"] > base["small"]) if task == "regression" else (base["usual"] < base["small"])
                others = means.drop("CASTLE")
                verdicts.append(
                    Verdict(
                        f"CASTLE among {name} methods with the usual initialization, {task}",
                        "not in the paper",
                        f"average rank over folds {means['CASTLE']:.2f} ({len(means)} is best), place {place}; the "
                        f"best other method is {others.index[0]} with {others.iloc[0]:.2f}. The plain network is worse "
                        f"with the usual initialization on {int(worse.sum())} of {len(worse)} tables",
                    )
                )
        return verdicts


PLAIN: Final = "plain"
WHOLE: Final = "L + R + V"
CELL: Final = ["source", "function", "noise", "n_columns", "n_rows", "extra"]
_FACTS: Final = ["rows", "columns", "redundancy", "unrelated", "linear", "flexible"]
_LEAVES, _SMALLEST_LEAF = 6, 0.08  # of the rule; the smallest leaf as a share of the cases


def by_draw(results: pd.DataFrame) -> pd.DataFrame:
    """Return one row per drawn table: its cell, its facts, and the gain of each part over the plain network, in %."""
    cells = [name for name in CELL if name in results]
    index = [*cells, "draw", *_FACTS]
    table = results.groupby(index, sort=False, dropna=False).ngroup().rename("table")
    errors = results.assign(table=table).pivot(index="table", columns="part", values="error").dropna(how="any")
    gain = 100 * (1 - errors.drop(columns=PLAIN).div(errors[PLAIN], axis=0))
    return results[index].groupby(table).first().join(gain, how="inner").reset_index(drop=True)


def _world_labels(frame: pd.DataFrame) -> pd.Series:
    """Return function, columns and noise of each row."""
    if "function" not in frame:
        return frame["source"]
    columns = frame["n_columns"].fillna(0).astype(int).astype(str)
    return frame["function"].astype(str) + ", " + columns + " columns,\nnoise " + frame["noise"].astype(str)


def _facts(frame: pd.DataFrame) -> list[TableFacts]:
    """Return the facts in each row."""
    return [TableFacts(**{name: row[name] for name in _FACTS}) for row in frame.to_dict(orient="records")]


def rule_of(results: pd.DataFrame) -> dict[str, Any]:
    """Learn a small regression tree, whose questions separate tables with large gains from those with small gains."""
    frame = by_draw(results)
    facts = pd.DataFrame([{name: getattr(known, name) for name in QUESTIONS} for known in _facts(frame)])
    gain = frame[WHOLE].to_numpy()
    tree = DecisionTreeRegressor(
        criterion="absolute_error", max_leaf_nodes=_LEAVES, min_samples_leaf=_SMALLEST_LEAF, random_state=0
    ).fit(facts, gain)
    leaf_of = tree.apply(facts)

    def node(number: int) -> dict[str, Any]:
        if tree.tree_.children_left[number] < 0:
            low, typical, high = np.quantile(gain[leaf_of == number], [0.1, 0.5, 0.9])
            cases = int((leaf_of == number).sum())
            return {"typical": round(typical, 1), "low": round(low, 1), "high": round(high, 1), "cases": cases}
        question = facts.columns[tree.tree_.feature[number]]
        return {
            "question": question,
            "limit": float(f"{tree.tree_.threshold[number]:.3g}"),
            "below": node(tree.tree_.children_left[number]),
            "above": node(tree.tree_.children_right[number]),
        }

    return node(0)


def check_of(rule: dict[str, Any], results: pd.DataFrame) -> dict[str, float]:
    """Compare a rule with the gains on tables that were not used to learn it."""
    frame = by_draw(results)
    expected = [expected_gain(facts, rule) for facts in _facts(frame)]
    gain, typical = frame[WHOLE].to_numpy(), np.array([gain_of_table.typical for gain_of_table in expected])
    inside = [of_table.low <= value <= of_table.high for of_table, value in zip(expected, gain, strict=True)]
    promising = typical > np.median(typical)
    return {
        "tables": float(frame["source"].nunique()),
        "cases": float(len(gain)),
        "rank correlation": float(pd.Series(typical).corr(pd.Series(gain), method="spearman")),
        "inside the range": float(np.mean(inside)),
        "gain where more is expected": float(np.median(gain[promising])) if promising.any() else float("nan"),
        "gain elsewhere": float(np.median(gain[~promising])) if (~promising).any() else float("nan"),
    }


def rule_on_others(rule: dict[str, Any], results: pd.DataFrame) -> str:
    """Return a sentence on the performance of a rule on other tables."""
    if results.empty:
        return "no results on other tables"
    check = check_of(rule, results)
    return (
        f"on {check['tables']:.0f} tables that were not used to learn the rule ({check['cases']:.0f} cases): rank "
        f"correlation of expected and measured gain {check['rank correlation']:.2f}; "
        f"{100 * check['inside the range']:.0f} % of the gains are within the 80 % range; median gain "
        f"{check['gain where more is expected']:.1f} % on tables with an expected gain above the median, "
        f"{check['gain elsewhere']:.1f} % on the others"
    )


ROWS: Final = (100, 300, 1000, 3000)
EXTRA: Final = ("none", "random", "copies")
# The rule is learned on worlds and the tables of LEARNED, and checked on the tables of CHECKED.
LEARNED: Final = {"BH": "default", "FB": "default", "PD": "default", "CC": "default"}
CHECKED: Final = {name: "binary" if name == "LV" else "default" for name in ("BC", "SH", "SP", "RP", "LV", "diabetes")}
_PARTS: Final[dict[str, Candidates]] = {
    "plain": PAPER_METHODS["Baseline"],
    "V": PARTS["V"],
    "R + V": PARTS["R + V"],
    "L + V": PARTS["L + V"],
    "L + R + V": PAPER_METHODS["CASTLE"],
}
_COPY_NOISE = 0.5  # standard deviations of the column
_NOISE: Final = {"linear": (1.0,), "smooth": (0.3, 1.0)}  # in a linear world, noise only changes the units
_EXTRA_COLUMNS = 15
_MOST_TEST_ROWS = 1000


class WhenItPays(Experiment):
    """Rows x columns x extra columns x noise x functions on known worlds; rows x extra columns on real tables."""

    name = "when_it_pays"
    title = "When CASTLE pays"
    shown_in = "beyond the paper"
    explanation = (
        "The gain is the percentage by which the error (MSE, or 1 - AUROC) of five averaged fold networks is "
        "below that of the plain network with the same rows, folds and initial weights; beta is chosen by "
        "validation loss. V is sparsity of the input layers, R acyclicity, L reconstruction. Worlds are random "
        "graphs with two edges per node, linear or smooth functions (Gaussian processes) and noise of 0.3 or 1 "
        "(linear worlds only 1, because another value only changes the units). The fifteen extra columns are "
        "standard normal ('random') or columns of the table with noise of half a standard deviation ('copies')."
    )

    def units(self, scale: Scale) -> list[Settings]:
        """List cell x draw."""
        if scale == "quick":
            world: dict[str, Any] = {"source": "world", "n_columns": 4, "function": "linear", "noise": 0.3}
            shared: dict[str, Any] = {"n_rows": 60, "extra": "random", "n_extra": 2, "cv": 2, "max_epochs": 2}
            table: dict[str, Any] = {"source": "diabetes", "variant": "default"}
            return [{**of, **shared, "draw": draw} for of in (world, table) for draw in range(2)]
        shared = {"cv": 5, "max_epochs": 120}
        worlds: list[Settings] = [
            {"source": "world", "n_columns": columns, "function": function, "noise": noise}
            | {"n_rows": rows, "extra": extra, "n_extra": 0 if extra == "none" else _EXTRA_COLUMNS}
            for columns in (5, 10)
            for function in _NOISE
            for noise in _NOISE[function]
            for rows in ROWS
            for extra in EXTRA
        ]
        tables: list[Settings] = [
            {"source": table, "variant": variant}
            | {"n_rows": rows, "extra": extra, "n_extra": 0 if extra == "none" else _EXTRA_COLUMNS}
            for table, variant in (LEARNED | CHECKED).items()
            for rows in (100, 1000)
            for extra in EXTRA
        ]
        drawn: list[tuple[Settings, int]] = [*((cell, 5) for cell in worlds), *((cell, 3) for cell in tables)]
        return [{**cell, **shared, "draw": draw} for cell, n_draws in drawn for draw in range(n_draws)]

    def measure(self, settings: Settings) -> list[Record]:
        X, y, task, n_test = _rows(settings)
        train = len(y) - n_test
        seed = int(settings["draw"])
        facts = asdict(table_facts(X[:train], y[:train], task=task))
        result = compare(
            X,
            y,
            methods={name: [list(candidate) for candidate in candidates] for name, candidates in _PARTS.items()},
            cv=int(settings["cv"]),
            test_size=n_test,
            task=task,
            random_state=seed,
            max_epochs=int(settings["max_epochs"]),
            verbose=False,
        )
        errors = result.by_split.set_index("method")["score"]
        if result.higher_is_better:
            errors = 1 - errors
        return [{"part": part, "error": float(error), "task": task, **facts} for part, error in errors.items()]

    def cost(self, settings: Settings) -> float:
        columns = int(settings.get("n_columns", 16)) + int(settings["n_extra"])
        steps = int(settings["n_rows"]) / 32 * int(settings["max_epochs"]) / 2 * int(settings["cv"])
        return 2 + 10 * steps * (1e-5 + 1.8e-9 * columns**3)

    def summary(self, results: pd.DataFrame) -> pd.DataFrame:
        frame = by_draw(results)
        parts = [name for name in ("V", "R + V", "L + V", WHOLE) if name in frame]
        groups = frame.groupby([name for name in CELL if name in frame], sort=False, dropna=False)
        table = groups[parts].mean()
        table["standard error"] = groups[WHOLE].std() / np.sqrt(groups.size())
        table.insert(0, "draws", groups.size())
        table["best"] = table[parts].idxmax(axis=1)
        return table.reset_index()

    def draw(self, results: pd.DataFrame) -> Figure:
        import matplotlib.pyplot as plt

        frame = by_draw(results)
        frame["causal terms"] = frame[WHOLE] - frame["V"]
        frame["panel"] = np.where(frame["source"] == "world", _world_labels(frame), frame["source"])
        panels = list(dict.fromkeys(frame["panel"]))
        limit = 20
        columns = min(7, len(panels))
        height = -(-len(panels) // columns)
        figure, axes = plt.subplots(
            2 * height, columns, figsize=(1.75 * columns + 0.9, 3.4 * height + 0.8), layout="constrained", squeeze=False
        )
        for ax in axes.flat:
            ax.set_axis_off()
        for k, value in enumerate((WHOLE, "causal terms")):
            for position, panel in enumerate(panels):
                ax = axes[k * height + position // columns, position % columns]
                ax.set_axis_on()
                means = frame[frame["panel"] == panel].pivot_table(
                    index="extra", columns="n_rows", values=value, aggfunc="mean", sort=False
                )
                means = means[sorted(means.columns)]
                image = ax.imshow(means, cmap="RdBu", vmin=-limit, vmax=limit, aspect="auto")
                for (i, j), gain in np.ndenumerate(means.to_numpy()):
                    colour = "white" if abs(gain) > 0.6 * limit else "black"
                    ax.text(j, i, f"{round(gain)}", ha="center", va="center", fontsize=7, color=colour)
                is_table = panel in set(frame["source"])  # which may have fewer rows than the largest size
                sizes = [f"up to {rows}" if is_table and rows >= 1000 else str(rows) for rows in means.columns]
                ax.set_xticks(range(means.shape[1]), sizes, fontsize=6)
                labels = list(means.index) if position % columns == 0 else [""] * len(means)
                ax.set_yticks(range(means.shape[0]), labels, fontsize=7)
                ax.set_title(panel, fontsize=7)
                ax.tick_params(length=0)
        figure.colorbar(image, ax=axes, shrink=0.5, label="%", fraction=0.02)
        figure.suptitle(
            f"Upper {height} rows: error of CASTLE below the plain network, %. "
            f"Lower {height}: gain of acyclicity and reconstruction over sparsity, %. Horizontal axis: training rows.",
            fontsize=9,
        )
        return figure

    def verdicts(self, results: pd.DataFrame) -> list[Verdict]:
        learned = results[results["source"].isin(["world", *LEARNED])]
        others = results[results["source"].isin(CHECKED)]
        return [
            Verdict(
                "the gain of CASTLE over the plain network can be predicted from the table",
                "not in the paper",
                rule_on_others(rule_of(learned), others),
            )
        ]


def _rows(settings: Settings) -> tuple[pd.DataFrame, pd.Series, Any, int]:
    """Return the rows of a unit in random order, the task, and the number of rows to hold out."""
    n_rows, n_extra, seed = int(settings["n_rows"]), int(settings["n_extra"]), int(settings["draw"])
    rng = np.random.default_rng([seed, n_rows])
    if settings["source"] == "world":
        problem = random_problem(
            int(settings["n_columns"]) + 1,
            n_rows,
            branching=2,
            function=str(settings["function"]),
            noise_std=float(settings["noise"]),
            n_test_rows=_MOST_TEST_ROWS,
            random_state=seed,
        )
        X = pd.concat([problem.X, problem.X_test], ignore_index=True)
        y, task = pd.concat([problem.y, problem.y_test], ignore_index=True), "regression"
        n_test = _MOST_TEST_ROWS
    else:
        data = load(str(settings["source"]), variant=str(settings["variant"]))
        n_test = min(len(data.y) - min(n_rows, int(0.8 * len(data.y))), _MOST_TEST_ROWS)
        chosen = rng.permutation(len(data.y))[: min(n_rows, int(0.8 * len(data.y))) + n_test]
        X, y, task = data.X.iloc[chosen].reset_index(drop=True), data.y.iloc[chosen].reset_index(drop=True), data.task
    return _with_extra(X, str(settings["extra"]), n_extra, rng), y, task, n_test


def _with_extra(X: pd.DataFrame, extra: str, n_extra: int, rng: np.random.Generator) -> pd.DataFrame:
    """Add noise columns, or noisy copies of the numeric columns in cyclic order."""
    if extra == "none":
        return X
    values = rng.standard_normal((len(X), n_extra))
    if extra == "copies":
        numbers = X.select_dtypes("number").to_numpy(np.float64)
        numbers = np.where(np.isnan(numbers), np.nanmean(numbers, axis=0), numbers)
        original = numbers[:, np.arange(n_extra) % numbers.shape[1]]
        values = original + _COPY_NOISE * original.std(axis=0) * values
    return X.assign(**{f"{extra}{k + 1}": values[:, k] for k in range(n_extra)})
