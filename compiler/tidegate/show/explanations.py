"""An explanation as text: short, usual, or long with every window."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final, Literal

from tidegate_dsl.model import bound_of
from tidegate_dsl.vocabulary import spell

from tidegate.explain import Explanation
from tidegate.fate import Document, Fate, StaticWindows
from tidegate.judged import Judged, counted
from tidegate.timeline import sparkline, with_hours
from tidegate.values import say

Form = Literal["short", "usual", "long"]
Styled = tuple[str, str]  # (style, line)
_INDENT: Final = 13  # of what stands behind a word


def explanation(found: Explanation, fate: Fate, *, form: Form, width: int) -> Iterator[Styled]:
    """What a person reads of one select's view of a prefix.

    Args:
        found: what the select found.
        fate: what the plan made of it.
        form: `short`: the verdict, and the reason with its figure. `usual`: also all that it rests on, the membership
            over time, and each clause passed or failed. `long`: also the value of every window.
        width: of a line of the timeline.
    """
    yield "bold", heading(found, fate)
    if form == "short":
        yield "", f"  {'; '.join(text for _, text in _why(found, fate))}"
        return
    for word, text in (*_why(found, fate), *_standing(fate), *_last_window(found)):
        yield "", _worded(word, text)
    yield from _timeline(found, width)
    yield from _clauses(found)
    if form == "long" and found.windows:
        yield from _every_window(found, width)


def without_select(place: str, claim: Document | None, initcwnds: StaticWindows) -> Iterator[Styled]:
    """What a person reads of a prefix where the policy selects nothing.

    Args:
        place: the prefix and the POP.
        claim: what the POP's hosts are told of it.
        initcwnds: windows set as they stand for prefixes that hold it, the longest first.
    """
    yield "bold", f"{place}: the policy has no select"
    for word, text in _settings(claim, initcwnds):
        yield "", _worded(word, text)


def heading(found: Explanation, fate: Fate) -> str:
    """`198.18.7.0/24 at fra2, by slow_clients: kept, treated by bbr_for_slow_clients`."""
    place = f"{found.prefix} at {found.pop}, by {found.select.name}"
    if fate.kind in {"absent", "elsewhere"}:
        return f"{place}: {'qualifies, and is not selected' if found.qualifies else 'not selected'}"
    arm = f", {fate.arm.replace('_', ' ')}" if fate.arm and fate.kind != "released" else ""
    return f"{place}: {fate.kind}{arm} by {fate.rule}"


def _why(found: Explanation, fate: Fate) -> Iterator[tuple[str, str]]:
    """The reason with its figure, until when it stays, and what it drew."""
    yield "why", _reason(found, fate)
    if fate.held_until:
        unless = "" if fate.kind == "held" else " if it stops qualifying"
        yield "hold", f"stays until {_minute(fate.held_until)}{unless}"
    if fate.hold_out_ppm and fate.draw_ppm is not None and fate.kind != "released":
        sign = "<" if fate.draw_ppm < fate.hold_out_ppm else ">="
        share = spell(fate.hold_out_ppm, "ratio")
        yield "arm", f"draws {fate.draw_ppm / 10_000:.2f}% {sign} {share} held out"


def _reason(found: Explanation, fate: Fate) -> str:
    if fate.kind in {"added", "kept"}:
        return f"{fate.because}: {_membership(found)}"
    if fate.kind == "deferred":
        return f"it qualifies and waits: {fate.because}"
    if fate.kind in {"held", "released"}:
        return f"{fate.because}{_figures(found, fate)}"
    return _nobody_asks(found, fate) if found.qualifies else _failing(found)


def _nobody_asks(found: Explanation, fate: Fate) -> str:
    if not fate.rules:
        return f"no rule that applies in {found.pop} asks for it"
    resting = [rule for rule in fate.rules if rule.name not in fate.active]
    if len(resting) == len(fate.rules):
        said = "; ".join(
            f"{rule.active.clause.text} (line {rule.active.clause.line})" for rule in resting if rule.active
        )
        return f"no rule that asks for it applies at this time: {said}"
    if fate.kind == "elsewhere":
        return f"{fate.rule} has decided on it: {fate.because}"
    return "it was not there when the plan was made: the telemetry has changed since"


def _failing(found: Explanation) -> str:
    if not found.windows:
        least = counted(bound_of(found.select.min_samples, 1, selected=False), "sample")
        return f"not observed in the lookback, which takes {least} passing `from` in a window"
    failed = [each for each in found.clauses if not each.passed]
    return "; ".join(_clause(each) for each in failed)


def _clause(each: Judged) -> str:
    return f"{each.clause.text} (line {each.clause.line}): {each.found}"


def _figures(found: Explanation, fate: Fate) -> str:
    """What was found of the clauses that it fails; a clause that is the reason is not named again."""
    if not found.windows:
        return ""
    failed = [each for each in found.clauses if not each.passed]
    known = (f"{each.clause.text} (line {each.clause.line})" in fate.because for each in failed)
    said = [each.found if is_known else _clause(each) for each, is_known in zip(failed, known, strict=True)]
    return f": {'; '.join(said)}" if said else ""


def _membership(found: Explanation) -> str:
    members = found.timeline.count("1")
    share = f"member in {members} of {counted(len(found.timeline), 'window')}"
    if not found.windows:
        return share
    last, metric = found.windows[-1], found.select.metric
    return f"{share}, at last with {say(metric, last.value)} against {say(metric, last.threshold)}"


def _standing(fate: Fate) -> Iterator[tuple[str, str]]:
    """What the decision rests on beside telemetry."""
    if fate.admitted_at:
        yield "since", _minute(fate.admitted_at)
    for rule in fate.rules:
        if rule.active:
            now = "applies" if rule.name in fate.active else "does not apply"
            span = f"{_minute(rule.active.start)} until {_minute(rule.active.end)}"
            yield (
                "schedule",
                f"{rule.name} {now} at the plan's time; active {span} (line {rule.active.clause.line})",
            )
    for state, until in fate.guards:
        ends = f", admits none until {_minute(until)}" if until else ""
        yield (
            "guard",
            f"{state.guard}: {state.status.replace('_', ' ')} since {_minute(state.since)}{ends}; {state.because}",
        )
    if trial := fate.trial:
        name, rule_name = trial.experiment.name, trial.experiment.on
        if trial.off:
            yield "experiment", f"{name}: {rule_name} is off in this period, every host is control"
        elif trial.hosts:
            yield "experiment", f"{name}: control hosts without {rule_name}: {', '.join(trial.hosts)}"
        else:
            yield "experiment", f"{name}: no host is control now"
    yield from _settings(fate.claim, fate.initcwnds)
    if fate.trial and fate.trial.hosts and fate.control_claim != fate.claim:
        yield "", f"control hosts: {_told(fate.control_claim) if fate.control_claim else 'nothing'}"


def _settings(claim: Document | None, initcwnds: StaticWindows) -> Iterator[tuple[str, str]]:
    for prefix, setting in initcwnds[:1]:
        at = f"(line {setting.clause.line})"
        yield "initcwnd", f"{counted(setting.segments, 'segment')} for {prefix} by {setting.name} {at}"
    yield "told", _told(claim) if claim else "nothing: the kernel's own settings"


def _told(claim: dict[str, object]) -> str:
    words = []
    if algorithm := claim.get("congestion_control"):
        size = claim.get("min_bytes")
        words.append(
            f"{algorithm} from {spell(size, 'size')} on" if isinstance(size, int) else f"{algorithm}"
        )
        if size and claim.get("ungated_fallback"):
            words.append("to every transfer where a host can not gate by size")
    words += [f"{window} {claim[window]}" for window in ("initcwnd", "initrwnd") if window in claim]
    return ", ".join(words)


def _last_window(found: Explanation) -> Iterator[tuple[str, str]]:
    if not found.windows:
        return
    last, metric = found.windows[-1], found.select.metric
    rate, threshold = say(metric, last.value), say(metric, last.threshold)
    yield (
        "last",
        f"{_minute(last.start)}: {metric} {rate}, threshold {threshold}, {counted(last.samples, 'sample')}",
    )
    if absolute := found.select.rank.absolute:
        bound = say(metric, absolute.value)
        yield "", f"absolute: {metric} {rate}, {absolute.comparison} {bound} is asked for"


def _timeline(found: Explanation, width: int) -> Iterator[Styled]:
    if found.windows:
        yield from _over_time(found, "timeline", found.timeline, width)
        yield "", _worded("", "1 member, 0 not, . not observed; UTC")
    else:
        yield "", _worded("timeline", "not observed in the lookback")


def _every_window(found: Explanation, width: int) -> Iterator[Styled]:
    bars = sparkline(found.timeline, [(w.value, w.threshold) for w in found.windows])
    yield from _over_time(found, "values", bars, width)
    yield "", _worded("", "▄ is the threshold, █ twice as much or more")
    metric = found.select.metric
    yield "", f"  {'window':<18} {'samples':>7}  {metric:>16}  {'threshold':>16}"
    for w in found.windows:
        value, threshold = say(metric, w.value), say(metric, w.threshold)
        member = "  member" if w.member else ""
        yield "", f"  {_minute(w.start):<18} {w.samples:>7}  {value:>16}  {threshold:>16}{member}"


def _over_time(found: Explanation, word: str, marks: str, width: int) -> Iterator[Styled]:
    lines = with_hours(marks, found.start, found.select.step_us, max(width - _INDENT, 20))
    for number, text in enumerate(lines):
        yield "", _worded("" if number else word, text)


def _clauses(found: Explanation) -> Iterator[Styled]:
    width = max((len(each.clause.text) for each in found.clauses), default=0)
    for each in found.clauses:
        mark, style = ("pass", "green") if each.passed else ("FAIL", "red")
        leaves = f"; selected before: {each.bound} counts" if each.leaves else ""
        text = f"{each.clause.text:<{width}}  {each.found}{leaves}  (line {each.clause.line})"
        yield style, _worded(mark, text)


def _worded(word: str, text: str) -> str:
    return f"  {word:<{_INDENT - 2}}{text}"


def _minute(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%MZ}"
