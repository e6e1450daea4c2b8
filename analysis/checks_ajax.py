"""Checks that only Ajax's files allow: configuration, identity, the S2 audit, the final state."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from analysis.checks import (
    Check,
    ExpectedAjax,
    Sizes,
    absent,
    compare_values,
    exit_check,
    identity,
    outcome,
)
from analysis.checks_files import files_check
from analysis.evidence import AjaxProcess, Evidence
from shared.configuration import ajax_resolved, flatten
from shared.protocol import (
    AJAX_DISTRIBUTION,
    FIRST_UPDATE_ROW,
    N_ENVS,
    S2_AUDIT_TOLERANCE,
    updates,
)
from shared.provenance.distributions import INSTALLED_ROOT
from shared.provenance.roots import AJAX_ROOT, AJAX_SRC_ROOT
from shared.records.launch_info import Revision

#: Where Ajax may have been imported from: a checkout's src, or the installed release.
_CODE_ROOTS = tuple(
    f"<{name.replace('_', '-')}>/" for name in (AJAX_SRC_ROOT, AJAX_ROOT, INSTALLED_ROOT)
)


@dataclass(frozen=True)
class S2Audit:
    """S2 of one Ajax seed at its last checkpoint, as logged and from the final return buffer."""

    logged: float
    audited: float | None


def ajax_checks(evidence: Evidence, sizes: Sizes, expected: ExpectedAjax) -> Iterator[Check]:
    """All checks of the Ajax side of a run directory."""
    process, own = evidence.ajax, evidence.own
    if process is None:
        return
    yield exit_check("ajax", process.exit_code, own=own)
    yield files_check("ajax", process, evidence.side.arm)
    run = (process.config or {}).get("run", {})
    if process.config is None:
        yield absent("ajax configuration", "config.json is missing", own=own)
    else:
        yield _config(process.config, sizes)
    if run:
        yield _arguments(run, sizes)
    else:
        yield Check("ajax arguments", None, "config.json does not have them, or is missing")
    yield identity_check(run, evidence.revision, expected, own=own)
    yield from _final(process, sizes, own=own)
    audits = s2_audit(evidence)
    for seed in evidence.side.seed_numbers:
        yield audit_check(seed, audits.get(seed))


def _config(config: Mapping[str, Any], sizes: Sizes) -> Check:
    """Resolved values, wherever the configuration keeps them (protocol section 3)."""
    leaves: dict[str, list[Any]] = {}
    for section in ("constructor", "dreamer_config", "agent_config"):
        for key, value in flatten(config.get(section) or {}).items():
            leaves.setdefault(key.rsplit(".", 1)[-1], []).append(value)
    faults = []
    for key, value in ajax_resolved(tiny=sizes.tiny).items():
        if key not in leaves:
            faults.append(f"{key} is missing")
        for found in leaves.get(key, ()):
            # A constructor argument left at None takes the configuration's value.
            if found is not None:
                faults += compare_values({key: found}, {key: value})
    schedule = {
        "schedule.first_update_step": FIRST_UPDATE_ROW,
        # Ticks are numbered from 0: the one that brings the first row of an update.
        "schedule.first_update_tick": (FIRST_UPDATE_ROW - 1) // N_ENVS,
        "schedule.total_updates": updates(sizes.rows),
        "n_envs": N_ENVS,
        "ring_rows": sizes.rows // N_ENVS,
    }
    faults += compare_values(flatten(config), schedule)
    count = len(ajax_resolved(tiny=sizes.tiny)) + len(schedule)
    return outcome("ajax configuration", faults, f"{count} resolved values")


def _arguments(run: Mapping[str, Any], sizes: Sizes) -> Check:
    expected = {
        "rows": sizes.rows,
        "log_every": sizes.every,
        "eval_episodes": sizes.episodes,
        "tiny": sizes.tiny,
    }
    faults = compare_values(run, expected)
    if list(run.get("seeds", [])) != list(sizes.seeds):
        faults.append(
            f"seeds {run.get('seeds')} ran in one vmapped call, compared are {list(sizes.seeds)}"
        )
    return outcome("ajax arguments", faults, "as the round's")


def identity_check(
    run: Mapping[str, Any], launched: Revision | None, expected: ExpectedAjax, *, own: bool
) -> Check:
    """Which Ajax ran, from ``config.json``, else from ``launch_info.txt``, against the expected."""
    found = _identity(run, launched, expected, own=own)
    named = f"; {expected.named_by} names the expected one" if expected.named_by else ""
    return replace(found, detail=found.detail + named)


def _identity(
    run: Mapping[str, Any], launched: Revision | None, expected: ExpectedAjax, *, own: bool
) -> Check:
    name = "ajax identity"
    if run and not str(run.get("ajax_file", "")).startswith(_CODE_ROOTS):
        return Check(name, False, f"imported from {run.get('ajax_file')}: not where Ajax is")
    release = run.get("ajax_distribution") or (launched and launched.distribution)
    if release and not run.get("ajax_commit"):
        return _release(name, release, expected)
    commit = run.get("ajax_commit")
    revision = Revision(commit, run.get("ajax_dirty")) if commit else launched
    if expected.commit is None and revision is not None and revision.commit is not None:
        return Check(
            name, False, "a checkout ran; name the expected commit: --ajax-commit or --ajax-src"
        )
    return identity(name, revision, expected.commit or "", recorded=bool(commit), own=own)


def _release(name: str, release: Mapping[str, str], expected: ExpectedAjax) -> Check:
    found = f"{release.get('name')} {release.get('version')}"
    wanted = f"{AJAX_DISTRIBUTION} {expected.version}"
    if found != wanted:
        return Check(name, False, f"{found}, expected {wanted if expected.version else 'a commit'}")
    if expected.digest is not None and release.get("digest") != expected.digest:
        return Check(name, False, f"{found} with digest {release.get('digest')}: files changed")
    return Check(name, True, f"{found}, digest {str(release.get('digest'))[:12]}")


def s2_audit(evidence: Evidence) -> dict[int, S2Audit]:
    """Seed -> S2 as logged at the last checkpoint and recomputed from the final buffer."""
    audits = {}
    final = evidence.ajax.final if evidence.ajax else None
    for each in evidence.side.seeds:
        logged = each.records[-1].s2_logged if each.records else None
        if logged is not None:
            audits[each.seed] = S2Audit(logged, _audited(final, each.seed))
    return audits


def _audited(final: Mapping[str, Any] | None, seed: int) -> float | None:
    if not final or seed not in final["seeds"]:
        return None
    index = list(final["seeds"]).index(seed)
    total = np.asarray(final["return_sum"][index], dtype=np.float64).ravel()
    count = np.asarray(final["return_count"][index], dtype=np.float64).ravel()
    return float(np.mean(total / count)) if len(count) == N_ENVS and count.all() else None


def _final(process: AjaxProcess, sizes: Sizes, *, own: bool) -> Iterator[Check]:
    if process.final is None:
        yield absent("ajax final state", "ajax_final.npz is missing", own=own)
        return
    if not process.final:
        yield Check("ajax final state", None, "the keys of this ajax_final.npz are not known")
        return
    seeds = list(process.final["seeds"])
    for name, expected in (("rows", sizes.rows), ("updates", updates(sizes.rows))):
        faults = [
            f"seed {seed}: {int(value)}, expected {expected}"
            for seed, value in zip(seeds, np.ravel(process.final[name]), strict=True)
            if int(value) != expected
        ]
        yield outcome(f"ajax final {name}", faults, str(expected))


def audit_check(seed: int, audit: S2Audit | None) -> Check:
    """Logged against audited S2, tolerance 1e-4 (protocol section 9)."""
    name = f"ajax s{seed} S2 audit"
    if audit is None:
        return Check(name, None, "no S2 was logged")
    if audit.audited is None:
        return Check(name, None, "an environment has finished no episode, or no final buffer")
    gap = abs(audit.logged - audit.audited)
    detail = f"logged {audit.logged:.6f}, audited {audit.audited:.6f}"
    return Check(name, gap <= S2_AUDIT_TOLERANCE, detail, impossible=True)
