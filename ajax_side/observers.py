"""What watches a run from inside Ajax's one compiled call, without changing what it computes."""

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import jax

from ajax_side.recorder import NORMALISER_HIGH, NORMALISER_LOW
from shared.errors import UserError
from shared.protocol import N_ENVS

Log = Callable[[Mapping[str, Any], int], None]

_LOG_MODULE = "ajax.log"
_TRAIN_MODULE = "ajax.agents.DreamerV3.train_DreamerV3"


def observe(log: Log, beat: Callable[[int], None], *, stored: bool) -> list[str]:
    """Attach everything that a run is observed by; what was replaced, a line each.

    ``stored`` leaves host callbacks out, so that jax can keep the compiled program: then neither
    ``log`` nor ``beat`` is called.
    """
    replaced = (
        remove_log() if stored else observe_log(log),
        add_return_normaliser(),
        None if stored else add_heartbeat(beat),
    )
    return [each for each in replaced if each is not None]


def observe_log(log: Log) -> str:
    """Have ``log(metrics, seed position)`` called at every log point; returns what was replaced.

    ``ajax.log.gated_log_callback`` is the host callback that Ajax's program already contains:
    what it calls changes, the program does not.
    """
    module, stock = _log_callback()

    def observed(log_fn: Log, flag: Any, metrics: dict[str, Any], index: Any) -> None:
        def both(metrics: Mapping[str, Any], index: Any) -> None:
            log(metrics, int(index))
            log_fn(metrics, index)

        stock(both, flag, metrics, index)

    module.gated_log_callback = observed
    return f"{_LOG_MODULE}.gated_log_callback also calls the recorder"


def remove_log() -> str:
    """Have nothing called at the log points: jax stores no program that holds a host callback.

    What would have been logged is in the metrics that the call returns. Training computes the
    same, which a test holds bit for bit.
    """
    module, _ = _log_callback()
    module.gated_log_callback = lambda *_: None
    return f"{_LOG_MODULE}.gated_log_callback does nothing: what the call returns is recorded"


def add_heartbeat(beat: Callable[[int], None]) -> str | None:
    """Have ``beat(rows)`` called at the start of every tick; ``None`` where there is no such place.

    ``rows`` is how many were collected before. The callback reads the tick's number only, which
    all seeds share: it is called once a tick, and nothing that is trained depends on it.
    """
    module = importlib.import_module(_TRAIN_MODULE)
    stock = getattr(module, "collect", None)
    if stock is None:
        return None

    def observed(agent_state: Any, tick: Any, **options: Any) -> Any:
        jax.debug.callback(lambda number: beat(int(number) * N_ENVS), tick)
        return stock(agent_state, tick, **options)

    module.collect = observed  # type: ignore[attr-defined]
    return f"{_TRAIN_MODULE}.collect also reports the tick's number"


def add_return_normaliser() -> str | None:
    """Log the return normaliser's bounds too; ``None`` where this Ajax has no such place.

    The function that lists the logged metrics is asked at log points only, and reads two more
    values of the state. Training computes the same, which a test holds bit for bit.
    """
    module = importlib.import_module(_TRAIN_MODULE)
    stock = getattr(module, "train_metrics", None)
    if stock is None:
        return None

    def observed(agent_state: Any, *arguments: Any, **options: Any) -> dict[str, Any]:
        bounds = {NORMALISER_LOW: agent_state.retnorm.lo, NORMALISER_HIGH: agent_state.retnorm.hi}
        return {**stock(agent_state, *arguments, **options), **bounds}

    module.train_metrics = observed  # type: ignore[attr-defined]
    return f"{_TRAIN_MODULE}.train_metrics also lists the return normaliser's bounds"


def _log_callback() -> tuple[Any, Any]:
    """The module that logs, and its host callback."""
    module = importlib.import_module(_LOG_MODULE)
    stock = getattr(module, "gated_log_callback", None)
    if stock is None:
        raise UserError(f"{_LOG_MODULE} has no gated_log_callback: this Ajax cannot be observed")
    return module, stock
