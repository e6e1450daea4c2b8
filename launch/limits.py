"""Does this machine keep what the project asks of its rounds? Yes or no, by a bench's figures."""

from collections.abc import Sequence
from dataclasses import dataclass

from launch.bench_file import Bench

#: At full width: time inside observers over training time; the interval of observed to bare ticks
#: holds 1 or lies below this; start-up of a warm reference process over that of a cold one.
OBSERVER_SHARE, OBSERVER_RATIO, WARM_START = 0.01, 1.02, 0.1


@dataclass(frozen=True)
class Limit:
    """One limit: what was ``measured``, in words, and whether it ``holds``."""

    limit: str
    measured: str
    holds: bool

    def __str__(self) -> str:
        return f"{'yes' if self.holds else 'NO'}: {self.limit}: {self.measured}"


def limits(bench: Bench) -> Sequence[Limit]:
    """What a bench says of each limit; at tiny widths nothing, where starting is most of the work.

    The ratio's interval counts whatever its confidence, which ``measured`` tells.
    """
    if bench.tiny:
        return ()
    share, ratio = bench.observers.share, bench.observers.ratio
    cold, warm = (bench.start_s("reference", warm=warm) for warm in (False, True))
    return (
        Limit(
            f"observers take at most {OBSERVER_SHARE:.0%} of training time by their clock",
            f"{share:.2%}",
            share <= OBSERVER_SHARE,
        ),
        Limit(
            f"observed to bare, the interval holds 1 or lies below {OBSERVER_RATIO}",
            str(ratio),
            ratio.low <= 1 <= ratio.high or ratio.high < OBSERVER_RATIO,
        ),
        Limit(
            f"a warm reference process starts within {WARM_START:.0%} of its cold start-up",
            f"{warm:.1f} s of {cold:.1f} s",
            warm <= WARM_START * cold,
        ),
    )
