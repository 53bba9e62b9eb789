"""Options of the CASTLE estimators: the paper's regularizer, and others beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from castlereg.acyclicity import ACYCLICITY
from castlereg.estimators.base import NetworkEstimator
from castlereg.options import check_choice
from castlereg.regularizers import Castle, Regularizer
from castlereg.regularizers.protocol import check_regularizers
from castlereg.regularizers.released_castle import ReleasedCastle
from castlereg.training import Schedule


class CastleEstimator(NetworkEstimator):
    """A network with the regularizer :class:`castlereg.regularizers.Castle`, whose options are its own."""

    def __init__(
        self,
        reg_beta: float = 0.01,
        reg_lambda: float = 1.0,
        *,
        hidden_layer_sizes: Literal["auto"] | tuple[int, ...] = "auto",
        acyclicity: str = "expm",
        sparsity: str = "l1",
        reconstruct: Literal["all"] | int = "all",
        regularizers: Sequence[Regularizer] = (),
        setting: str = "paper",
        input_init: str = "small",
        categorical_features: Sequence[str] | Sequence[int] | Sequence[bool] | None = None,
        scaling: str = "standard",
        learning_rate: float = 1e-3,
        batch_size: int = 32,
        max_epochs: int = 200,
        patience: int = 30,
        validation_fraction: float = 0.1,
        n_members: int = 1,
        bootstrap: bool = False,
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            regularizers,
            hidden_layer_sizes=hidden_layer_sizes,
            input_init=input_init,
            categorical_features=categorical_features,
            scaling=scaling,
            learning_rate=learning_rate,
            batch_size=batch_size,
            max_epochs=max_epochs,
            patience=patience,
            validation_fraction=validation_fraction,
            n_members=n_members,
            bootstrap=bootstrap,
            random_state=random_state,
            verbose=verbose,
        )
        self.reg_beta = reg_beta
        self.reg_lambda = reg_lambda
        self.acyclicity = acyclicity
        self.sparsity = sparsity
        self.reconstruct = reconstruct
        self.setting = setting

    def _all_regularizers(self) -> tuple[Regularizer, ...]:
        return self._castle(self.reg_beta, self.reg_lambda)

    def _castle(self, reg_beta: float, reg_lambda: float) -> tuple[Regularizer, ...]:
        """Put CASTLE with these strengths before the other regularizers."""
        check_choice("setting", self.setting, ["paper", "released"])
        others = check_regularizers(self.regularizers)
        if any(isinstance(one, Castle) for one in others):
            raise ValueError(
                f"{type(self).__name__} has Castle already: set reg_beta and reg_lambda, or use "
                f"{type(self).__name__.replace('Castle', 'Network')}(regularizers=[Castle(...)]) for its switches"
            )
        check_choice("acyclicity", self.acyclicity, ACYCLICITY)
        check_choice("sparsity", self.sparsity, ["l1", "group"])
        if self._released():
            return (ReleasedCastle(reg_beta, reg_lambda, reconstruct=self.reconstruct), *others)
        castle = Castle(
            reg_beta,
            reg_lambda,
            acyclicity=self.acyclicity,
            sparsity=self.sparsity,  # type: ignore[arg-type]
            reconstruct=self.reconstruct,
        )
        return (castle, *others)

    def _released(self) -> bool:
        return self.setting == "released"

    def _schedule(self) -> Schedule:
        schedule = super()._schedule()
        if not self._released():
            return schedule
        # The released code starts checkpoints and patience at epoch 50 and draws its batches independently.
        return replace(schedule, warmup=min(50, schedule.max_epochs - 1), draws="independent")

    def _auto_width(self, n_features: int) -> int:
        return 32 if self._released() else super()._auto_width(n_features)
