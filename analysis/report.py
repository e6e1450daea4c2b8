"""What ``nox -s compare`` prints of a comparison."""

from collections.abc import Sequence

from analysis.checks import Check, failed_checks
from analysis.comparison import Comparison, Statistic
from analysis.formats import integers, interval, number, p_value
from analysis.readings import read_round3, round3_notes
from analysis.replication import ajax_line
from analysis.study import Study
from analysis.tables import verdict
from shared.protocol import SIDES


def report(result: Study) -> list[str]:
    """The verdict as lines for the terminal."""
    comparison = result.comparison
    lines = [comparison.title, verdict(comparison)]
    for statistic in (comparison.late, comparison.s1, comparison.s2):
        if statistic is not None and statistic.rule is not None:
            lines += _statistic_lines(statistic)
    if comparison.entropy:
        disjoint = comparison.disjoint_windows
        lines.append(
            f"  entropy windows with disjoint seed ranges: {integers(disjoint)} "
            f"(of {len(comparison.entropy)})"
        )
    lines += _reading_lines(comparison)
    lines += [f"  {note}" for note in (*ajax_line(result.checks), *comparison.notes)]
    for statistic in comparison.common[-1:]:
        lines += _statistic_lines(statistic)
    lines += [f"  out of reach: {missing}" for missing in comparison.out_of_reach]
    return lines + check_lines(result.checks)


def check_lines(checks: Sequence[Check]) -> list[str]:
    """The failed checks, and how many there are of each kind."""
    failed = failed_checks(checks)
    passed = sum(check.ok is True for check in checks)
    skipped = sum(check.ok is None for check in checks)
    counts = f"{passed} passed, {len(failed)} failed, {skipped} not possible"
    return [*map(str, failed), f"checks: {counts}"]


def _statistic_lines(statistic: Statistic) -> list[str]:
    means = [number(float(statistic.values[side].mean())) for side in SIDES]
    found = statistic.companion
    lines = [f"  {statistic.name:<4} reference {means[0]}, Ajax {means[1]} (means over seeds)"]
    if found is not None:
        test = found.permutation
        lines.append(
            f"       not pre-registered: difference {found.difference:.1f} "
            f"{interval(found.interval)}, permutation p {p_value(test.p)} (smallest possible "
            f"{p_value(test.smallest_p)}), detectable at 80 % power: {number(found.detectable)} "
            f"{interval(found.detectable_interval)}"
        )
    return lines


def _reading_lines(comparison: Comparison) -> list[str]:
    if comparison.round_number != 3 or "reference" not in comparison.concordance:
        return []
    welch = comparison.late.welch if comparison.late else None
    reading = read_round3(comparison.concordance["reference"], welch)
    notes = [f"  {line}" for line in round3_notes(comparison) if line]
    return [f"  reading: {reading or 'out of reach'}", *notes]
