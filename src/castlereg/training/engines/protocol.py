"""What an engine does for a stack: it holds the states of the members and runs their epochs."""

from __future__ import annotations

from typing import Any, Literal, Protocol

from castlereg.training.state import MemberInputs, MemberState, Shared

EngineName = Literal["jax", "native"]
EngineChoice = Literal["auto", "jax", "native"]


class Engine(Protocol):
    """Trains the members of one stack.

    A stack gives NumPy arrays and reads NumPy arrays, those of members with a leading member axis. What an engine makes
    of them in between is its own affair.
    """

    @property
    def name(self) -> EngineName:
        """Name of the engine."""

    @property
    def members_per_worker(self) -> int:
        """Most members that one device or core trains, which decides how many epochs make a call of a fair length."""

    states: MemberState  # of all members, as placed by the engine; the stack sets them, ``run`` brings them up to date

    def place(self, by_member: Any) -> Any:
        """Turn a tree of NumPy arrays with a leading member axis into what the engine holds."""

    def read(self, placed: Any) -> Any:
        """Return copies as NumPy arrays, member by member, once they are computed; Ctrl-C is heard meanwhile."""

    def share(self, shared: Shared) -> Shared:
        """Turn what all members share into what the engine holds."""

    def run(self, inputs: MemberInputs, shared: Shared) -> Any:
        """Run ``shared.epochs`` epochs of all active members and return the log, placed.

        The log has shape (members, epochs that there is room for, columns), NaN for epochs that were not run. Arrays
        of ``inputs`` are NumPy arrays. The call may return before the epochs are done. Ctrl-C never loses states that
        it has computed.
        """

    def close(self) -> None:
        """Let go of the states."""
