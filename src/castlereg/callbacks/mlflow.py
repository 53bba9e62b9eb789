"""Log training in MLflow."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from castlereg.callbacks.figures import figures_of, file_name, final_figures, mean_figures
from castlereg.training.callbacks import Epoch, Every

_LONGEST = 500  # characters of an option; older servers take no more
_MOST_METRICS = 1000  # of a request
_SECONDS = 1.0  # between requests, each of which takes tens of milliseconds


@dataclass
class MLflow:
    """Log a fit as an MLflow run: options, metrics of epochs and, optionally, the model and its report.

    Metrics are means over the networks of a stage, and the lowest validation loss so far; those of later stages start
    with its name, such as ``refit/validation_loss``. They are sent about once per second, and at the end. If the fit
    raises, the status of the run is failed. Needs mlflow or mlflow-skinny (``castlereg[mlflow]``).

    Parameters
    ----------
    experiment : str, optional
        Name of the experiment, which is created if it does not exist. By default, the fit is logged to the active run,
        which then stays open; or to MLflow's default experiment if there is no active run.
    run_name : str, optional
        Name of the run.
    tracking_uri : str, optional
        Where MLflow stores its runs, such as ``"sqlite:///mlflow.db"``; MLflow's own setting by default.
    model : bool
        Whether to store the model, as a file for :func:`castlereg.load`.
    report : tuple of (X, y), optional
        Rows for a report on the model, which is stored too: :func:`castlereg.write_report`.
    each : bool
        Whether to log the metrics of every network too.
    every : int, sequence of int or None
        Epochs to log, see :data:`castlereg.training.callbacks.Every`.

    Attributes
    ----------
    run_id : str
        ID of the run of the last fit.

    Examples
    --------
    ::

        model.fit(X, y, callbacks=[MLflow("diabetes", tracking_uri="sqlite:///mlflow.db", model=True)])
    """

    experiment: str | None = None
    run_name: str | None = None
    tracking_uri: str | None = None
    model: bool = False
    report: tuple[Any, Any] | None = None
    each: bool = False
    every: Every = 1
    run_id: str = field(init=False, repr=False, default="")
    _client: Any = field(init=False, repr=False, default=None)
    _is_own: bool = field(init=False, repr=False, default=True)
    _last: int = field(init=False, repr=False, default=0)
    _waiting: list[Any] = field(init=False, repr=False, default_factory=list)  # metrics
    _sent_at: float = field(init=False, repr=False, default=0.0)

    def begin(self, estimator: Any) -> None:
        """Begin a run, or join the active one; log the options."""
        mlflow = _mlflow()
        from mlflow.entities import Param
        from mlflow.tracking import MlflowClient

        self._client, self.run_id, self._waiting = MlflowClient(self.tracking_uri), "", []
        active = mlflow.active_run()
        self._is_own = active is None or any(option is not None for option in (self.experiment, self.tracking_uri))
        if self._is_own:
            self.run_id = self._client.create_run(self._experiment_id(), run_name=self.run_name).info.run_id
        else:
            self.run_id = active.info.run_id
        options = {"estimator": type(estimator).__name__, **estimator.get_params(deep=False)}
        params = [Param(name, str(value)[:_LONGEST]) for name, value in options.items()]
        self._client.log_batch(self.run_id, params=params)

    def _experiment_id(self) -> str:
        if self.experiment is None:
            return "0"
        known = self._client.get_experiment_by_name(self.experiment)
        return str(self._client.create_experiment(self.experiment) if known is None else known.experiment_id)

    def __call__(self, epoch: Epoch) -> None:
        """Log the metrics of an epoch."""
        stage = "" if epoch.stage == "training" else f"{file_name(epoch.stage)}/"
        figures = {stage + name: value for name, value in mean_figures(epoch).items()}
        for i, member in enumerate(epoch.members if self.each else ()):
            figures |= {f"{stage}{file_name(member)}/{name}": value for name, value in figures_of(epoch, i).items()}
        self._note(figures, epoch.number)
        self._last = epoch.number
        if time.monotonic() - self._sent_at >= _SECONDS:
            self._send()

    def end(self, estimator: Any, error: BaseException | None) -> None:
        """Log the final metrics and files of the fitted model, and end the run."""
        if not self.run_id or self._client is None:
            return  # the run did not begin
        status = "FAILED"
        try:
            if error is None:
                self._note(final_figures(estimator), self._last)
            self._send()
            if error is None:
                self._keep_files(estimator)
                status = "FINISHED"
            elif isinstance(error, KeyboardInterrupt):
                status = "KILLED"
        finally:
            if self._is_own:
                self._client.set_terminated(self.run_id, status)
            self._client = None

    def _note(self, figures: dict[str, float], step: int) -> None:
        from mlflow.entities import Metric

        now = int(1000 * time.time())
        self._waiting += [Metric(name, value, now, step) for name, value in figures.items()]

    def _send(self) -> None:
        for first in range(0, len(self._waiting), _MOST_METRICS):
            self._client.log_batch(self.run_id, metrics=self._waiting[first : first + _MOST_METRICS])
        self._waiting, self._sent_at = [], time.monotonic()

    def _keep_files(self, estimator: Any) -> None:
        with tempfile.TemporaryDirectory() as folder:
            if self.model:
                from castlereg.persistence import save

                save(estimator, Path(folder) / "model.castle")
                self._client.log_artifact(self.run_id, str(Path(folder) / "model.castle"))
            if self.report is not None:
                from castlereg.report import write_report

                write_report(estimator, *self.report, Path(folder) / "report.html", verbose=False)
                self._client.log_artifact(self.run_id, str(Path(folder) / "report.html"))


def _mlflow() -> Any:
    try:
        import mlflow
    except ImportError:
        raise ImportError("MLflow needs the package mlflow-skinny or mlflow: pip install 'castlereg[mlflow]'") from None
    return mlflow
