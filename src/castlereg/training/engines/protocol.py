"""Protocol of engines: an engine holds the states of a stack's members and runs their epochs."""

from __future__ import annotations

from typing import Any, Literal, Protocol

from castlereg.training.state import MemberInputs, MemberState, Shared

EngineName = Literal["jax", "native"]
EngineChoice = Literal["auto", "jax", "native"]


class Engine(Protocol):
    """Trains the members of one stack.

    A stack passes and reads NumPy arrays; those of members have a leading member axis. In between, an engine may store
    them in any form.
    """

    @property
    def name(self) -> EngineName:
        """Name of the engine."""

    @property
    def members_per_worker(self) -> int:
        """Largest number of members that one device or core trains; it sets the number of epochs per call."""

    states: MemberState  # of all members, as placed by the engine; the stack sets them, ``run`` updates them

    def place(self, by_member: Any) -> Any:
        """Convert a tree of NumPy arrays with a leading member axis to the form that the engine holds."""

    def read(self, placed: Any) -> Any:
        """Return copies as NumPy arrays, member by member, once they are computed; Ctrl-C interrupts the wait."""

    def share(self, shared: Shared) -> Shared:
        """Convert the shared inputs to the form that the engine holds."""

    def run(self, inputs: MemberInputs, shared: Shared) -> Any:
        """Run ``shared.epochs`` epochs of all active members and return the log, placed.

        The log has shape (members, epochs, columns), with the epoch axis of ``inputs`` and NaN for epochs that were not
        run. Arrays of ``inputs`` are NumPy arrays. The call may return before the epochs are done. Ctrl-C never loses
        states that it has computed.
        """

    def close(self) -> None:
        """Release the states."""
