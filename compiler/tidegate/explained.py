"""An explanation as JSON values."""

from datetime import datetime
from typing import Any

from tidegate.explain import Explanation
from tidegate.fate import Fate
from tidegate.times import format_time

Document = dict[str, Any]


def document(found: Explanation, fate: Fate, decision: Document | None) -> Document:
    """The JSON form; `decision` is the plan's, where it has one."""
    return {
        "pop": found.pop,
        "prefix": found.prefix,
        "select": found.select.name,
        "metric": found.select.metric,
        "qualifies": found.qualifies,
        "selected_before": found.selected,
        "reasons": list(found.reasons),
        "timeline": found.timeline,
        "clauses": [each.to_json() for each in found.clauses],
        "windows": [
            {
                "start": format_time(w.start),
                "samples": w.samples,
                "value": w.value,
                "threshold": w.threshold,
                "member": w.member,
            }
            for w in found.windows
        ],
        "decision": decision,
        "fate": _fate(fate),
    }


def _fate(fate: Fate) -> Document:
    trial = fate.trial
    return {
        "kind": fate.kind,
        "rule": fate.rule,
        "because": fate.because or None,
        "arm": fate.arm,
        "admitted_at": _time(fate.admitted_at),
        "held_until": _time(fate.held_until),
        "rules": [
            {
                "rule": rule.name,
                "active": rule.name in fate.active,
                "from": _time(rule.active.start if rule.active else None),
                "until": _time(rule.active.end if rule.active else None),
            }
            for rule in fate.rules
        ],
        "draw_ppm": fate.draw_ppm,
        "hold_out_ppm": fate.hold_out_ppm,
        "guards": [
            {
                "guard": state.guard,
                "rule": state.rule,
                "state": state.status,
                "because": state.because,
                "since": format_time(state.since),
                "until": _time(until),
            }
            for state, until in fate.guards
        ],
        "experiment": trial
        and {"experiment": trial.experiment.name, "control_hosts": list(trial.hosts), "off": trial.off},
        "told": fate.claim,
        "control_hosts_told": fate.control_claim,
        "initcwnd": [
            {"name": setting.name, "prefix": prefix, "segments": setting.segments}
            for prefix, setting in fate.initcwnds
        ],
    }


def _time(moment: datetime | None) -> str | None:
    return format_time(moment) if moment else None
