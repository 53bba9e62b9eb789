"""A module that takes the rows of a table and makes the same predictions as a fitted estimator."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from castlereg.estimators.base import NetworkEstimator, read_features
from castlereg.fitted import Blend
from castlereg.fitted.blend import targets_only
from castlereg.table.targets import ClassTarget, Target
from castlereg.torch.conversion import standardized_inputs
from castlereg.torch.losses import as_tensor
from castlereg.torch.network import CastleNetwork


class TableNetwork(nn.Module):
    """The preprocessing of a fitted estimator, and the targets' sub-networks of all networks that predict together.

    Parameters
    ----------
    model : estimator
        Any fitted castlereg estimator, including pools and refits.

    Attributes
    ----------
    networks : ModuleList of CastleNetwork

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_diabetes
    >>> from castlereg import CastleRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = CastleRegressor(max_epochs=5, random_state=0).fit(X, y)
    >>> predicted = TableNetwork(model).double()(X)
    >>> bool(np.allclose(predicted.detach(), model.predict(X), rtol=1e-9))
    True
    """

    def __init__(self, model: NetworkEstimator) -> None:
        super().__init__()
        check_is_fitted(model)
        predictor = model.model_.predictor
        parts = predictor.parts if isinstance(predictor, Blend) else (targets_only(predictor),)
        shares = predictor.weights.tolist() if isinstance(predictor, Blend) else [1.0]
        self.model = model
        self._members = [
            (part, member, share / part.n_members)
            for part, share in zip(parts, shares, strict=True)
            for member in range(part.n_members)
        ]
        self.networks = nn.ModuleList(
            CastleNetwork.from_parameters(part.member(member), part.layout) for part, member, _ in self._members
        )

    def forward(self, X: ArrayLike) -> Tensor | tuple[Tensor, ...]:
        """Predict rows as in ``fit``: values, shape (rows,), or probabilities, shape (rows, classes).

        With several targets, it returns a tuple with one tensor for each. Gradients flow to the weights.
        """
        cells = self.model.model_.cells(read_features(self.model, X))
        targets, totals = self.model.model_.targets, []
        networks: Any = self.networks
        for network, (part, member, share) in zip(networks, self._members, strict=True):
            like = network.input_weights
            x = as_tensor(standardized_inputs(part, cells, member), like.dtype, like.device)
            factor, offset = (as_tensor(scale[member], like.dtype, like.device) for scale in part.output_scales)
            outputs = network.target_outputs(x) * factor[:, None] + offset[:, None]
            totals.append([share * _decoded(target, outputs[:, k]) for k, target in enumerate(targets)])
        predicted = tuple(torch.stack(of_target).sum(dim=0) for of_target in zip(*totals, strict=True))
        return predicted[0] if len(predicted) == 1 else predicted


def _decoded(target: Target, outputs: Tensor) -> Tensor:
    """Turn outputs, shape (rows, outputs), into values (rows,) or probabilities (rows, classes)."""
    if not isinstance(target, ClassTarget):
        return outputs[:, 0] * target.spread + target.center
    if len(target.classes) == 2:
        positive = torch.sigmoid(outputs[:, 0])
        return torch.stack([1 - positive, positive], dim=1)
    return torch.softmax(outputs[:, : len(target.classes)], dim=1)
