"""`judge` with the real OPA: a yes only for what is good, and never one where OPA did not clearly say so."""

import ipaddress
import json
import resource
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tidegate.contracts import validate
from tidegate.errors import BAD_INPUT, MISSING_PART, Failure
from tidegate.guard import TIMEOUT_SECONDS, Denial, judge, plan_document, vars_document

FLEET = {
    "schema_version": 1,
    "origins": ["198.18.255.0/24"],
    "pops": {
        "fra2": {
            "groups": [],
            "hosts": ["fra2-edge1"],
            "own_prefixes": ["192.0.2.0/26", "2001:db8:f020::/48"],
        },
        "iad1": {"groups": [], "hosts": ["iad1-edge1"], "own_prefixes": ["192.0.2.64/26"]},
    },
}


def claim(prefix):
    return {"prefix": prefix, "congestion_control": "bbr", "min_bytes": 100_000, "ungated_fallback": False}


def variables(pop, claims, *, added=(), removed=()):
    document = {
        "schema_version": 1,
        "pop": pop,
        "generation": "0123456789abcdef",
        "previous_generation": None,
        "policy_digest": "sha256:" + "0" * 64,
        "watermark": "2026-11-20T05:55:00Z",
        "claims": claims,
        "learn": None,
        "control_claims": [],
        "control_hosts": [],
        "changes": {"added": list(added), "removed": list(removed), "withdrawn": []},
    }
    validate(document, "vars", pop)
    return document


def plan(claims, fleet=FLEET):
    return plan_document(
        vars_by_pop={"fra2": variables("fra2", claims)},
        fleet=fleet,
        as_of="2026-11-20T06:00:00Z",
        watermark="2026-11-20T05:55:00Z",
    )


class TestVerdict:
    def test_a_good_plan_is_allowed(self):
        verdict = judge(plan([claim("198.51.100.0/24")]))
        assert verdict.allow
        assert verdict.denials == ()

    def test_good_variables_are_allowed(self):
        assert judge(vars_document({"fra2": variables("fra2", [claim("198.51.100.0/24")])}, FLEET)).allow

    def test_every_denial_is_told_in_one_order(self):
        denied = [claim("192.0.2.64/26"), claim("0.0.0.0/0"), {"prefix": "203.0.113.0/24", "initcwnd": 400}]
        verdict = judge(plan(denied))
        assert not verdict.allow
        assert {(denial.code, denial.prefix) for denial in verdict.denials} == {
            ("own_prefix", "192.0.2.64/26"),
            ("own_prefix", "0.0.0.0/0"),
            ("too_wide_prefix", "0.0.0.0/0"),
            ("initcwnd", "203.0.113.0/24"),
        }
        assert judge(plan(denied[::-1])) == verdict

    def test_a_denial_tells_where_and_why(self):
        verdict = judge(plan([{"prefix": "203.0.113.0/24", "initcwnd": 400}]))
        assert verdict.denials == (
            Denial("initcwnd", "fra2", "203.0.113.0/24", "initcwnd of 400 is above 100 segments"),
        )

    @pytest.mark.parametrize("key", ["kind", "as_of", "watermark", "vars", "fleet"])
    def test_a_missing_key_is_denied(self, key):
        document = plan([claim("198.51.100.0/24")])
        del document[key]
        verdict = judge(document)
        assert not verdict.allow
        assert "missing_input" in {denial.code for denial in verdict.denials}
        assert any(f"`{key}`" in denial.message for denial in verdict.denials)

    def test_the_callers_limits_are_used(self, tmp_path):
        text = (Path(__file__).parents[2] / "policies" / "limits.yaml").read_text()
        strict = tmp_path / "strict.yaml"
        strict.write_text(text.replace("algorithms: [bbr, cubic, reno]", "algorithms: [cubic]"))
        verdict = judge(plan([claim("198.51.100.0/24")]), limits=strict)
        assert [denial.code for denial in verdict.denials] == ["unknown_algorithm"]


def networks():
    """Networks of few addresses, so that many of them overlap."""
    v4 = st.builds(
        lambda third, host, length: ipaddress.ip_network((f"198.18.{third}.{host}", length), strict=False),
        st.integers(0, 3),
        st.sampled_from([0, 64, 128, 255]),
        st.integers(16, 32),
    )
    v6 = st.builds(
        lambda group, host, length: ipaddress.ip_network(
            (f"2001:db8:{group:x}::{host:x}", length), strict=False
        ),
        st.integers(0, 3),
        st.sampled_from([0, 1, 0xFFFF]),
        st.integers(32, 128),
    )
    return v4 | v6


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    claimed=st.lists(networks(), min_size=1, max_size=30, unique=True),
    own=st.lists(networks(), min_size=1, max_size=6),
    origins=st.lists(networks(), max_size=2),
)
def test_own_prefixes_are_those_that_overlap(claimed, own, origins):
    """The look-up by length denies exactly what a comparison of every pair denies."""
    pops = FLEET["pops"] | {
        "iad1": {"groups": [], "hosts": [], "own_prefixes": [str(network) for network in own]}
    }
    fleet = FLEET | {"pops": pops, "origins": [str(network) for network in origins]}
    ours = [*own, *origins, *map(ipaddress.ip_network, FLEET["pops"]["fra2"]["own_prefixes"])]
    expected = {
        str(network)
        for network in claimed
        if any(network.version == other.version and network.overlaps(other) for other in ours)
    }
    verdict = judge(plan([claim(str(network)) for network in claimed], fleet))
    assert {denial.code for denial in verdict.denials} <= {"own_prefix"}
    assert {denial.prefix for denial in verdict.denials} == expected


def test_a_large_fleet_is_judged_in_time():
    """50 POPs of 500 claims and 100 own prefixes each, with CPU for a quarter of the time that OPA is given.

    CPU and not time by the clock: that is what a busy machine leaves alone.
    """
    own = {f"pop{i}": [f"3ffe:{i:x}:{j + 1:x}::/48" for j in range(100)] for i in range(50)}
    fleet = {
        "schema_version": 1,
        "origins": [],
        "pops": {pop: {"groups": [], "hosts": [], "own_prefixes": own[pop]} for pop in own},
    }
    claims = [claim(f"3fff:1:{i + 1:x}:100::/56") for i in range(500)]
    document = vars_document({pop: variables(pop, claims) for pop in own}, fleet)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    verdict = judge(document)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert verdict.denials == ()
    took_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert 0 < took_s < TIMEOUT_SECONDS / 4


def program(path, script):
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


NEW = '[ "$1" = version ] && { echo "Version: 1.4.2"; exit; }\n'


def printing(value):
    answer = {"result": [{"expressions": [{"value": value, "text": "q", "location": {"row": 1, "col": 1}}]}]}
    return f"{NEW}echo '{json.dumps(answer)}'"


class TestNoAnswer:
    """Whatever stands in OPA's place, it is code 3 with a way out, never a verdict."""

    @pytest.mark.parametrize(
        ("script", "words"),
        [
            ("echo Version: 0.70.0", "it is version 0.70, older than 1.0"),
            ("echo hello", "names no version"),
            ("exit 1", "ended with code 1"),
            (NEW + "echo out of memory >&2; exit 2", "ended with code 2: out of memory"),
            (NEW + "kill -SEGV $$", "ended with code -11"),
            (NEW + "kill -KILL $$", "was killed"),
            (NEW + "true", "not JSON"),
            (NEW + "echo '{}'", "lacks `allow` or `denials`"),
            (NEW + "echo '[]'", "lacks `allow` or `denials`"),
            (NEW + "echo true", "lacks `allow` or `denials`"),
            (printing({}), "lacks `allow` or `denials`"),
            (printing({"allow": True}), "lacks `allow` or `denials`"),
            (printing({"allow": 1, "denials": []}), "lacks `allow` or `denials`"),
            (printing({"allow": "true", "denials": []}), "lacks `allow` or `denials`"),
            (printing({"allow": True, "denials": {}}), "lacks `allow` or `denials`"),
            (printing({"allow": True, "denials": [{"code": "x"}]}), "unknown form"),
            (
                printing(
                    {"allow": True, "denials": [{"code": "x", "pop": None, "prefix": None, "message": ""}]}
                ),
                "allows and denies at once",
            ),
        ],
    )
    def test_it_is_a_failure(self, tmp_path, script, words):
        with pytest.raises(Failure, match=words) as failure:
            judge(plan([claim("198.51.100.0/24")]), opa=program(tmp_path / "opa", script))
        assert failure.value.exit_code == MISSING_PART
        assert "OPA 1.0 or later" in failure.value.help

    def test_a_missing_program_is_a_failure(self, tmp_path):
        with pytest.raises(Failure, match="cannot be started: No such file") as failure:
            judge(plan([]), opa=str(tmp_path / "opa"))
        assert failure.value.exit_code == MISSING_PART

    def test_one_that_hangs_is_killed(self, tmp_path, monkeypatch):
        monkeypatch.setattr("tidegate.guard.TIMEOUT_SECONDS", 0.2)
        with pytest.raises(Failure, match=r"gave no answer within 0\.2 s"):
            judge(plan([]), opa=program(tmp_path / "opa", NEW + "exec sleep 60"))

    def test_one_that_never_stops_talking_is_killed(self, tmp_path, monkeypatch):
        monkeypatch.setattr("tidegate.guard.MAX_ANSWER_BYTES", 10_000)
        with pytest.raises(Failure, match="printed more than 10000 bytes"):
            judge(plan([]), opa=program(tmp_path / "opa", NEW + "exec yes"))

    def test_rules_that_say_nothing_are_a_failure(self, tmp_path):
        (tmp_path / "guard.rego").write_text("package tidegate.guard\n")
        (tmp_path / "limits.yaml").write_text("limits: {}\n")
        with pytest.raises(Failure, match="lacks `allow` or `denials`") as failure:
            judge(plan([]), rules=tmp_path)
        assert failure.value.exit_code == MISSING_PART

    def test_rules_that_are_broken_are_a_failure(self, tmp_path):
        (tmp_path / "guard.rego").write_text("package tidegate.guard\n\nallow if\n")
        (tmp_path / "limits.yaml").write_text("limits: {}\n")
        with pytest.raises(Failure, match=r"guard\.rego") as failure:
            judge(plan([]), rules=tmp_path)
        assert failure.value.exit_code == MISSING_PART

    def test_no_rules_and_no_limits_are_bad_input(self, tmp_path):
        with pytest.raises(Failure, match="holds no guard rules") as failure:
            judge(plan([]), rules=tmp_path)
        assert failure.value.exit_code == BAD_INPUT
        with pytest.raises(Failure, match="no such file of limits") as failure:
            judge(plan([]), limits=tmp_path / "limits.yaml")
        assert failure.value.exit_code == BAD_INPUT
