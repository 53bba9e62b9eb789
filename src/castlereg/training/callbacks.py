"""How training is watched and stopped: callbacks, Ctrl-C and the progress bar."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from castlereg.options import check_choice, check_integer, check_number

Answer = bool | NDArray[np.bool_] | None
OnInterrupt = Literal["raise", "keep"]

_Every = int | Sequence[int] | None
"""When to call a callback, see :class:`Callback`. Training pauses for each call: None costs nothing, 10 less than 1."""


@dataclass(frozen=True)
class Epoch:
    """State of a stack of networks after an epoch.

    Parameters
    ----------
    stage : str
        ``"training"``, ``"refit"``, or the stage of a search.
    number : int
        Number of epochs done, from 1.
    max_epochs : int
        Maximum number of epochs of the stage.
    members : tuple of str
        Names of the networks: ``"network 0"``, or strengths and fold, ``"reg_beta=0.1, fold 2"``.
    metrics : mapping of str to array of shape (members,)
        The columns of ``history_``: ``"objective"``, its terms, ``"validation_loss"`` and ``"learning_rate"``. NaN for
        networks that stopped before this epoch.
    best_loss : array of shape (members,)
        Lowest validation loss so far of every network; infinite before the first epoch that counts.
    active : array of bool, shape (members,)
        Which networks are still training.
    """

    stage: str
    number: int
    max_epochs: int
    members: tuple[str, ...]
    metrics: Mapping[str, NDArray[np.floating[Any]]]
    best_loss: NDArray[np.floating[Any]]
    active: NDArray[np.bool_]


class Callback(Protocol):
    """A callable that takes an :class:`Epoch`, such as a function.

    The attributes are optional.

    Attributes
    ----------
    every : int, sequence of int or None
        When to call it: after every n-th epoch, after the listed epochs, or (None) each time the compiled program
        returns, after up to 16 epochs; and always after the last epoch. 1 by default.
    begin : callable
        Called with the estimator before a fit.
    end : callable
        Called after a fit, with the estimator and the exception that ended the fit, or None.
    """

    def __call__(self, epoch: Epoch, /) -> Answer:
        """Return True to stop all members of the stack, a mask of shape (members,) to stop some, None to continue.

        A member stops with its best weights, so it cannot stop before its first epoch that counts.
        """


@dataclass
class TimeLimit:
    """Stop training after a number of seconds.

    The networks keep their best weights so far. In a search, every stage still trains for its first epochs.

    Parameters
    ----------
    seconds : float
        Time limit, from the start of the fit.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from castlereg import CastleRegressor
    >>> from castlereg.callbacks import TimeLimit
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = CastleRegressor(max_epochs=10**6).fit(X, y, callbacks=[TimeLimit(0.1)])
    >>> len(model.history_) < 10**4
    True
    """

    seconds: float
    every: ClassVar[_Every] = None
    _ends: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_number("seconds", self.seconds, above=0)
        self.begin()

    def begin(self, estimator: Any = None) -> None:
        """Start the clock."""
        self._ends = time.monotonic() + self.seconds

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() > self._ends

    def __call__(self, epoch: Epoch) -> bool:
        """Stop all members once the time is up."""
        return self.is_over


@dataclass(frozen=True)
class Control:
    """How training is watched and stopped.

    Parameters
    ----------
    callbacks : sequence of Callback
        Called after epochs; they may stop members.
    on_interrupt : {"raise", "keep"}
        Whether Ctrl-C raises KeyboardInterrupt, or ends training with the best weights so far and a warning.
    progress : bool or tqdm
        Whether to show a progress bar; or a bar to update, which counts epochs.
    stage : str
        Name of the stack for callbacks.

    Examples
    --------
    >>> Control([TimeLimit(60)], on_interrupt="keep").stage
    'training'
    """

    callbacks: Sequence[Callback] = ()
    on_interrupt: OnInterrupt = "raise"
    progress: bool | tqdm[Any] = False
    stage: str = "training"

    def __post_init__(self) -> None:
        check_choice("on_interrupt", self.on_interrupt, ["raise", "keep"])

    @contextmanager
    def progress_bar(self, total: int) -> Iterator[tqdm[Any]]:
        """Return the bar that was passed, or a new one of this many epochs."""
        if not isinstance(self.progress, bool):
            yield self.progress
            return
        with tqdm(total=total, desc="training", unit="epoch", disable=not self.progress, leave=False) as bar:
            yield bar

    def next_epoch(self, done: int) -> float:
        """Return the next epoch after which training must pause for a callback; infinity without one."""
        return min((_next(_every(callback), done) for callback in self.callbacks), default=math.inf)

    def due(self, number: int) -> list[Callback]:
        """Return the callbacks to call after an epoch, if it is not the last one."""
        return [c for c in self.callbacks if _every(c) is None or _next(_every(c), number - 1) == number]


def members_to_stop(callbacks: Sequence[Callback], epoch: Epoch) -> NDArray[np.bool_]:
    """Call callbacks; return a mask of the members to stop."""
    stopped = np.zeros(len(epoch.members), bool)
    for callback in callbacks:
        answer = callback(epoch)
        mask = np.asarray(False if answer is None else answer)
        if mask.dtype != bool or mask.shape not in ((), stopped.shape):
            raise ValueError(
                f"callback {_name(callback)} returned {answer!r}; return None, True, False, or a boolean array with "
                f"one value for each of the {len(stopped)} networks"
            )
        stopped |= mask
    return stopped


def check_callbacks(callbacks: Any) -> tuple[Callback, ...]:
    """Check callbacks, and return them as a tuple."""
    if isinstance(callbacks, str) or not hasattr(callbacks, "__iter__"):
        raise ValueError(f"callbacks={callbacks!r} must be a sequence, such as [TimeLimit(60)]")
    checked = tuple(callbacks)
    for callback in checked:
        if isinstance(callback, type):
            raise ValueError(
                f"callbacks contains the class {callback.__name__}; pass an instance, {callback.__name__}()"
            )
        if not callable(callback):
            raise ValueError(f"callbacks contains {callback!r}, which is not callable; pass functions of an epoch")
        every = _every(callback)
        if every is not None:
            for epoch in every if isinstance(every, Sequence) else [every]:
                check_integer(f"every of {_name(callback)}", epoch)
    return checked


@contextmanager
def watched(callbacks: Sequence[Callback], estimator: Any) -> Iterator[None]:
    """Call ``begin`` of every callback before the ``with`` block and ``end`` after it, also after an error."""
    with ExitStack() as stack:
        for callback in callbacks:
            end = getattr(callback, "end", None)
            if end is not None:
                stack.push(lambda _type, error, _traceback, end=end: end(estimator, error) and False)
            begin = getattr(callback, "begin", None)
            if begin is not None:
                begin(estimator)
        yield


def _every(callback: Callback) -> _Every:
    every: _Every = getattr(callback, "every", 1)
    return every


def _next(every: _Every, done: int) -> float:
    if every is None:
        return math.inf
    if isinstance(every, Sequence):
        return min((epoch for epoch in every if epoch > done), default=math.inf)
    return done + every - done % every


def _name(callback: Callback) -> str:
    return getattr(callback, "__name__", type(callback).__name__)
