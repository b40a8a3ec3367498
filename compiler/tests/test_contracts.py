"""Contracts: what breaks one is named by place, value and what is allowed; canonical JSON has one form."""

import copy
import json
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tidegate.contracts import canonical_json, sha256_digest, validate
from tidegate.errors import BAD_INPUT, Failure

VARS = {
    "schema_version": 1,
    "pop": "fra2",
    "generation": "0123456789abcdef",
    "previous_generation": None,
    "policy_digest": "sha256:" + "0" * 64,
    "watermark": "2026-11-20T05:55:00Z",
    "claims": [{"prefix": "198.51.100.0/24", "congestion_control": "bbr"}],
    "control_claims": [],
    "control_hosts": [],
    "learn": None,
    "changes": {"added": [], "removed": [], "withdrawn": []},
}

LEARN = {
    "toward": [],
    "initcwnd_min": 10,
    "initcwnd_max": 100,
    "smooth_ppm": 500_000,
    "every_us": 1_000_000,
    "expire_us": 600_000_000,
}


def complaint(document, name="vars"):
    with pytest.raises(Failure) as failure:
        validate(document, name, "some.yml")
    assert failure.value.exit_code == BAD_INPUT
    assert failure.value.help == f"the contract is schemas/{name}.schema.json"
    return failure.value.message


def changed(change):
    document = copy.deepcopy(VARS)
    change(document)
    return document


def test_a_good_document_passes():
    validate(VARS, "vars", "some.yml")
    validate(VARS | {"learn": LEARN, "previous_generation": "0" * 16}, "vars", "some.yml")


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (VARS | {"pop": "Fra2"}, '$.pop: `"Fra2"` must match ^[a-z][a-z0-9_]{0,15}$'),
        (VARS | {"schema_version": 2}, "$.schema_version: `2` must be `1`"),
        (VARS | {"claims": {}}, "$.claims: `{}` must be of type array"),
        (VARS | {"learn": 3}, "$.learn: `3` must be learn or null"),
        (VARS | {"learn": LEARN | {"smooth_ppm": 0}}, "$.learn.smooth_ppm: `0` must be at least 1"),
        (VARS | {"learn": LEARN | {"initrwnd": 0}}, "$.learn.initrwnd: `0` must be at least 1"),
        (
            VARS | {"learn": LEARN | {"hold_out_ppm": 1_000_000}},
            "$.learn.hold_out_ppm: `1000000` must be at most 999999",
        ),
        (
            VARS | {"learn": LEARN | {"initcwnd_max": 65536}},
            "$.learn.initcwnd_max: `65536` must be at most 65535",
        ),
        (
            changed(lambda document: document["claims"][0].update(prefix="198.51.100.0/24\n")),
            (
                r'$.claims[0].prefix: `"198.51.100.0/24\n"` must match ^[0-9a-f.:]+/[0-9]{1,3}$: '
                "CIDR, network address without host bits"
            ),
        ),
        (
            changed(lambda document: document["claims"][0].pop("congestion_control")),
            (
                '$.claims[0]: `{"prefix": "198.51.100.0/24"}` must be an object with `congestion_control` '
                "or an object with `initcwnd` or an object with `initrwnd`"
            ),
        ),
        (
            changed(lambda document: document["changes"].pop("added")),
            '$.changes: `{"removed": [], "withdrawn": []}` lacks the key `added`',
        ),
        (
            changed(lambda document: document["changes"].update(kept=[])),
            (
                '$.changes: `{"added": [], "removed": [], "withdrawn": [], "kept": []}` has the unknown key `kept`; '
                "allowed: `added`, `removed`, `withdrawn`"
            ),
        ),
        (
            VARS | {"learn": LEARN | {"toward": None}},
            "$.learn.toward: `null` must be of type array",
        ),
        (
            VARS | {"learn": {key: LEARN[key] for key in ("toward", "every_us", "expire_us", "smooth_ppm")}},
            (
                '$.learn: `{"toward": [], "every_us": 1000000, "expire_us": 60000000...` '
                "lacks the key `initcwnd_max`, `initcwnd_min`"
            ),
        ),
    ],
)
def test_the_message_names_place_value_and_what_is_allowed(document, message):
    assert complaint(document) == f"some.yml: {message}"


def test_a_threshold_without_algorithm_is_named():
    document = changed(
        lambda document: document["claims"].append({"prefix": "::/0", "initcwnd": 1, "min_bytes": 1})
    )
    assert complaint(document).endswith("lacks the key `congestion_control`, which another of its keys needs")


def test_at_most_five_errors_are_told():
    lines = complaint(
        VARS | {"claims": [{"prefix": number, "initcwnd": 1} for number in range(9)]}
    ).splitlines()
    assert [line.split(":")[1] for line in lines[:5]] == [
        f" $.claims[{number}].prefix" for number in range(5)
    ]
    assert lines[5:] == ["some.yml: there are more"]


def test_a_long_value_is_shortened():
    assert len(complaint(VARS | {"watermark": "9" * 10_000})) < 250


@pytest.mark.parametrize("name", ["plan", "vars", "fleet", "steering"])
@pytest.mark.parametrize("document", [None, 1, "text", [], {}])
def test_every_contract_refuses_what_is_no_such_document(name, document):
    assert "some.yml: $: " in complaint(document, name)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(JSON)
def test_canonical_json_is_the_same_document(document):
    written = canonical_json(document)
    assert written.isascii()
    assert json.loads(written) == document
    assert canonical_json(json.loads(written)) == written


@given(st.dictionaries(st.text(), st.integers(), min_size=2))
def test_the_order_of_keys_makes_no_difference(document):
    backwards = dict(reversed(document.items()))
    assert sha256_digest(backwards) == sha256_digest(document)


def test_a_digest_is_the_known_one():
    # printf '{"a":1,"b":"\\u00e9"}' | sha256sum
    assert canonical_json({"b": "é", "a": 1}) == b'{"a":1,"b":"\\u00e9"}'
    assert sha256_digest({}) == "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_json_lacks_is_refused(number):
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json({"value": number})


def test_different_documents_have_different_digests():
    documents = [{}, [], None, 0, "", {"a": None}, {"a": 0}, {"a": ""}]
    assert all(sha256_digest(one) != sha256_digest(other) for one, other in combinations(documents, 2))
