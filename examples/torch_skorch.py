"""CASTLE in skorch: the objective in a PyTorch estimator, with a pipeline and a grid search of scikit-learn.

skorch provides the loop, the batches and the callbacks. Two methods define the training loss and the predictions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_diabetes
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetRegressor
from skorch.callbacks import EarlyStopping
from torch import Tensor, cat, manual_seed
from torch.nn.functional import pad
from torch.optim import Adam

from castlereg.torch import Batch, CastleNetwork, castle_loss


class CastleNet(NeuralNetRegressor):  # type: ignore[misc, unused-ignore]
    """A regressor with the training loss of CASTLE and the predictions of the target's sub-network."""

    def __init__(self, *args: Any, reg_beta: float = 0.01, **options: Any) -> None:
        self.reg_beta = reg_beta
        super().__init__(*args, **options)

    def infer(self, x: Tensor, **options: Any) -> Tensor:
        """Predict the target; its sub-network never uses its channel, the last one."""
        return self.module_.target_outputs(pad(x, (0, 1)))[:, 0]

    def get_loss(self, y_pred: Tensor, y_true: Tensor, X: Tensor, training: bool = False) -> Tensor:
        """Return CASTLE's objective in training, and the squared error in validation."""
        if training:
            return castle_loss(self.module_, Batch.of_numbers(cat([X, y_true], dim=1)), self.reg_beta)[0]
        return super().get_loss(y_pred, y_true, X, training)


def main(max_epochs: int = 200) -> float:
    """Choose beta, print the test score and the strongest edges, and return the score."""
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    table = X.assign(progression=y).astype(np.float32)
    train, test = train_test_split(table, random_state=0)
    manual_seed(0)  # for the order of the batches
    net = CastleNet(
        CastleNetwork,
        module__layout=X.shape[1],
        module__hidden_layer_sizes=(11, 11),
        batch_size=32,
        max_epochs=max_epochs,
        optimizer=Adam,
        lr=1e-3,
        iterator_train__shuffle=True,
        callbacks=[EarlyStopping(patience=30, load_best=True)],
        verbose=0,
    )
    model = TransformedTargetRegressor(make_pipeline(StandardScaler(), net), transformer=StandardScaler())
    search = GridSearchCV(model, {"regressor__castlenet__reg_beta": [0.001, 0.01, 0.1]}, cv=3)
    search.fit(train[X.columns], train[["progression"]])
    score = float(search.score(test[X.columns], test[["progression"]]))
    chosen = search.best_estimator_.regressor_["castlenet"]
    weights = pd.DataFrame(chosen.module_.edge_weights(), table.columns, table.columns)
    print(f"beta {chosen.reg_beta}, R2 of the test rows {score:.3f}")
    print(weights.rename_axis("cause").rename_axis("effect", axis=1).stack().nlargest(5).round(2).to_string())
    return score


if __name__ == "__main__":
    main()
