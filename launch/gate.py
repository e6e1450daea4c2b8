"""Who of a round's processes may start now: one may have to wait for what another prepares."""

from collections.abc import Sequence
from typing import Protocol

from launch.plan import Job


class Gate(Protocol):
    """Asked before a process is started."""

    def allows(self, job: Job, running: Sequence[Job]) -> bool:
        """Whether ``job`` may start; with nothing running it must be allowed."""

    def look(self, running: Sequence[Job]) -> None:
        """Called as often as the processes are looked at, and once for one that has ended."""


class OpenGate:
    """Lets every process start."""

    def allows(self, job: Job, running: Sequence[Job]) -> bool:  # noqa: ARG002
        """Always."""
        return True

    def look(self, running: Sequence[Job]) -> None:
        """Nothing is looked at."""
