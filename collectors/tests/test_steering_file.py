"""steering.json as the agent reads it: a good one becomes records, a bad one an error that names the place."""

import json
import time

import pytest
from tidegate_edge.errors import BAD_INPUT, Failure
from tidegate_edge.steer.steering import MAX_BYTES, read_steering

GOOD = {
    "schema_version": 1,
    "generation": "0123456789abcdef",
    "default_congestion_control": "cubic",
    "claims": [
        {
            "prefix": "192.0.2.0/24",
            "congestion_control": "bbr",
            "min_bytes": 100000,
            "ungated_fallback": True,
        },
        {"prefix": "2001:db8:5::/48", "initcwnd": 40, "initrwnd": 60},
    ],
    "riptide": None,
}


def document(**changes):
    return {**GOOD, **changes}


def one_claim(**claim):
    return document(claims=[{"prefix": "192.0.2.0/24", **claim}])


def written(tmp_path, content):
    path = tmp_path / "steering.json"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def refused(path):
    with pytest.raises(Failure) as caught:
        read_steering(path)
    assert caught.value.exit_code == BAD_INPUT
    assert caught.value.help
    assert all(line.startswith(f"{path}: ") for line in caught.value.message.splitlines())
    return caught.value.message


def test_a_good_file_becomes_records(tmp_path):
    steering = read_steering(written(tmp_path, GOOD))
    gated, windows = steering.claims
    assert (gated.congestion_control, gated.min_bytes, gated.ungated_fallback) == ("bbr", 100000, True)
    assert (windows.congestion_control, windows.initcwnd, windows.initrwnd) == (None, 40, 60)
    assert steering.algorithms == ("bbr", "cubic")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ["line 1", "no JSON"]),
        (b'{\n "schema_version": 1,\n oops', ["line 3", "column 2"]),
        (json.dumps(GOOD).encode()[:-30], ["line 1", "no JSON"]),
        (b"\xff\xfe", ["byte 0", "no UTF-8"]),
        (b"[" * 100_000, ["nested too deeply"]),
        (b'{"schema_version": NaN}', ["`NaN`"]),
        (b'{"claims": [], "claims": []}', ["`claims`", "twice"]),
        (b"null", ["$", "None is not of type 'object'"]),
        ({}, ["'claims' is a required property", "'generation' is a required property"]),
        (document(schema_version=2), ["$.schema_version", "1 was expected"]),
        (document(surprise=1), ["'surprise'"]),
        (one_claim(initcwnd=0), ["$.claims[0].initcwnd", "0 is less than the minimum of 1"]),
        (one_claim(initcwnd=True), ["$.claims[0].initcwnd", "True is not of type 'integer'"]),
        (one_claim(congestion_control="BBR"), ["$.claims[0].congestion_control", "'BBR'"]),
        (one_claim(congestion_control="bbr\n"), ["$.claims[0].congestion_control", r"'bbr\n'"]),
        (document(default_congestion_control="Cubic!"), ["$.default_congestion_control", "'Cubic!'"]),
        (one_claim(min_bytes=1, initcwnd=1), ["$.claims[0]", "'congestion_control'"]),
        (one_claim(), ["$.claims[0]", "congestion_control"]),
        (
            one_claim(prefix="192.0.2.1/24", initcwnd=1),
            ["$.claims[0].prefix", "192.0.2.1/24 has host bits set"],
        ),
        (one_claim(prefix="192.0.2.0/33", initcwnd=1), ["$.claims[0].prefix", "192.0.2.0/33"]),
        (one_claim(prefix="fra1", initcwnd=1), ["$.claims[0].prefix", "'fra1'"]),
    ],
)
def test_a_bad_file_is_refused_with_its_place_and_value(tmp_path, content, words):
    message = refused(written(tmp_path, content))
    assert [word for word in words if word not in message] == []


def test_one_prefix_spelt_in_two_ways_is_claimed_twice(tmp_path):
    claims = [{"prefix": text, "initcwnd": 10} for text in ("2001:db8::/32", "2001:0db8::/32")]
    message = refused(written(tmp_path, document(claims=claims)))
    assert "$.claims[1].prefix: 2001:db8::/32 is claimed already by $.claims[0]" in message


def test_all_mistakes_are_named_up_to_five(tmp_path):
    claims = [{"prefix": f"192.0.2.{n}/24", "initcwnd": 10} for n in range(1, 9)]
    lines = refused(written(tmp_path, document(claims=claims))).splitlines()
    assert len(lines) == 6
    assert lines[-1].endswith("and 3 more")


def test_an_object_of_many_keys_is_refused_in_linear_time(tmp_path):
    path = written(tmp_path, {str(n): 0 for n in range(200_000)})
    before = time.process_time()
    assert "'claims' is a required property" in refused(path)
    assert time.process_time() - before < 20  # to count each key among all took minutes


def test_a_missing_file_is_refused(tmp_path):
    assert "No such file" in refused(tmp_path / "steering.json")


def test_a_file_too_large_is_refused_before_it_is_parsed(tmp_path):
    path = written(tmp_path, b"")
    with path.open("ab") as file:
        file.truncate(MAX_BYTES + 1)
    assert f"larger than {MAX_BYTES} bytes" in refused(path)
