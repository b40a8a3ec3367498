"""The inventory as a fleet: what Ansible itself reads, and errors that name the line."""

import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tidegate_dsl import InputError, check_file, read_fleet, read_limits
from tidegate_dsl.fleet.hosts import expand

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
HOSTS = (HERE / "fleet" / "hosts.yml").read_text(encoding="utf-8")


def write(directory: Path, text: str) -> Path:
    path = directory / "hosts.yml"
    path.write_text(text, encoding="utf-8")
    return path


class TestFleet:
    def test_has_pops_with_groups_hosts_and_canonical_prefixes(self) -> None:
        fleet = read_fleet(HERE / "fleet")
        assert [(pop.name, pop.groups, pop.hosts) for pop in fleet.pops] == [
            ("ams1", ("europe",), ("ams1-edge1", "ams1-edge2")),
            ("fra2", ("europe",), ("fra2-edge1",)),
            ("iad1", ("americas", "east"), ("iad1-edge1",)),
        ]
        assert fleet.pops[0].own_prefixes == ("192.0.2.0/26", "2001:db8:f010::/48")
        assert fleet.origins == ("198.19.255.0/24",)

    def test_directory_and_file_are_the_same(self) -> None:
        assert read_fleet(HERE / "fleet") == read_fleet(HERE / "fleet" / "hosts.yml")

    @pytest.mark.parametrize("inventory", [HERE / "fleet" / "hosts.yml", ROOT / "inventory" / "hosts.yml"])
    def test_is_what_ansible_reads(self, inventory: Path) -> None:
        listed = json.loads(
            subprocess.run(
                ["ansible-inventory", "-i", inventory, "--list"], check=True, capture_output=True, text=True
            ).stdout
        )
        variables = listed["_meta"]["hostvars"]
        by_pop: dict[str, set[str]] = {}
        for host, values in variables.items():
            by_pop.setdefault(values["tidegate_pop"], set()).add(host)
        assert {pop.name: set(pop.hosts) for pop in read_fleet(inventory).pops} == by_pop

    def test_a_merge_key_gives_way_to_the_groups_own_keys(self, tmp_path: Path) -> None:
        text = (
            "pops: {children: {a: {hosts: {a1: }, vars: &v {tidegate_pop: a, tidegate_own_prefixes: [192.0.2.0/26]}},"
            " b: {hosts: {b1: }, vars: {tidegate_pop: b, <<: *v}}}}\n"
        )
        fleet = read_fleet(write(tmp_path, text))
        assert [(pop.name, pop.own_prefixes) for pop in fleet.pops] == [
            ("a", ("192.0.2.0/26",)),
            ("b", ("192.0.2.0/26",)),
        ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("all:", "all: ]"), r"hosts\.yml:\d+: not YAML"),
        (("tidegate_pop: fra2", "tidegate_pop: Fra2"), r"hosts\.yml:23: `Fra2` is no POP name"),
        (
            ("tidegate_pop: fra2", "tidegate_pop: all"),
            r"hosts\.yml:23: `all` is a word of the policy language",
        ),
        (("tidegate_pop: fra2", "tidegate_pop: ams1"), r"two groups are the POP `ams1`"),
        (("tidegate_pop: fra2", "tidegate_pop: europe"), r"`europe` is both a POP and a group"),
        (
            ("tidegate_pop: fra2", "tidegate_pop: [fra2]"),
            r"hosts\.yml:23: `tidegate_pop` must be a single value",
        ),
        (("192.0.2.64/26", "192.0.2.65/26"), r"hosts\.yml:25: `tidegate_own_prefixes`: .*host bits"),
        (("- 198.19.255.0/24", "{}"), r"hosts\.yml:5: `tidegate_origins` must be a list"),
        (("pop_fra2:", "pop_ams1:"), r"hosts\.yml:19: `pop_ams1` stands twice"),
        (("edge[1:2]", "edge[2:1]"), r"hosts\.yml:13: `\[2:1\]` is no range of hosts"),
        (("    pops:", "    popps:"), r"has no group `pops`"),
        (("tidegate_pop", "pop_name"), r"no group below `pops` has the variable"),
        (("hosts:\n", "hosts: 7\n#"), r"hosts of `pop_ams1` must be a mapping"),
    ],
)
def test_a_wrong_inventory_is_refused_with_its_place(
    tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    text = HOSTS.replace(*change)
    assert text != HOSTS
    with pytest.raises(InputError, match=message):
        read_fleet(write(tmp_path, text))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "pops: &p {children: {pops: *p}}",
        "pops: {children: {a: {children: {b: {}}}, b: {children: {a: {}}}}}",
        "pops: {vars: &v {<<: &w {<<: *v}}}",
        "[" * 5000,
        "pops: {? [1] : 2}",
        "\x00",
        "pops: !!python/object:os.system {}",
    ],
)
def test_what_is_no_inventory_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError):
        read_fleet(write(tmp_path, text))


@settings(deadline=None)
@given(st.data())
def test_a_damaged_inventory_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(HOSTS)))
    end = start + data.draw(st.integers(0, 30))
    text = HOSTS[:start] + data.draw(st.text(st.sampled_from(" \n:-[]{}&*<a1#'\""), max_size=8)) + HOSTS[end:]
    path = write(tmp_path_factory.mktemp("damaged"), text)
    try:
        assert read_fleet(path).pops
    except InputError as error:
        assert "hosts.yml" in error.message  # noqa: PT017 - either outcome is right, neither must be silent


def test_host_ranges_are_expanded_as_ansible_does() -> None:
    assert expand("edge[08:10].b[a:b]") == [
        "edge08.ba",
        "edge09.ba",
        "edge10.ba",
        "edge08.bb",
        "edge09.bb",
        "edge10.bb",
    ]
    assert expand("edge[1:5:2]") == ["edge1", "edge3", "edge5"]
    assert expand("[2001:db8::1]:22") == ["[2001:db8::1]:22"]
    with pytest.raises(ValueError, match="no range"):
        expand("edge[1:99999999]")


class TestInput:
    @pytest.mark.parametrize(
        ("named", "way_out"),
        [
            ("broken", "correct it there"),
            ("broken/hosts.yml", "correct it there"),
            ("nowhere", "the path is relative to the policy file"),
            (".", "the path is relative to the policy file"),
        ],
    )
    def test_an_inventory_is_looked_for_or_corrected(self, tmp_path: Path, named: str, way_out: str) -> None:
        (tmp_path / "broken").mkdir()
        write(tmp_path / "broken", HOSTS.replace("192.0.2.64/26", "192.0.2.65/26"))
        policy = tmp_path / "a.tide"
        policy.write_text(f'edition 2026.1\ninventory "{named}"\n', encoding="utf-8")
        (found,) = check_file(policy, limits=HERE / "limits.yaml").diagnostics
        assert (found.code, found.help) == ("N108", way_out)

    def test_a_file_that_is_missing_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"can not read .*none\.tide: no such file"):
            check_file(tmp_path / "none.tide", limits=HERE / "limits.yaml")

    def test_a_file_that_is_not_utf8_is_named_with_line_and_byte(self, tmp_path: Path) -> None:
        path = tmp_path / "latin.tide"
        path.write_bytes(b"edition 2026.1\n# caf\xe9\n")
        with pytest.raises(InputError, match=r"latin\.tide:2: the file is not UTF-8 text: byte 0xe9"):
            check_file(path, limits=HERE / "limits.yaml")

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (("limits:", "bounds:"), r"has no `limits`"),
            (("initcwnd_max_segments: 100", "other: 1"), r"lacks `initcwnd_max_segments`"),
            (
                ("max: 2000", "max: many"),
                r"limits\.yaml:5: `prefixes_per_pop_max` must be a whole number, not `many`",
            ),
            (("[bbr, cubic, reno]", "[BBR]"), r"limits\.yaml:9: `BBR` is no name"),
        ],
    )
    def test_wrong_limits_are_refused(self, tmp_path: Path, change: tuple[str, str], message: str) -> None:
        path = tmp_path / "limits.yaml"
        path.write_text((HERE / "limits.yaml").read_text(encoding="utf-8").replace(*change), encoding="utf-8")
        with pytest.raises(InputError, match=message):
            read_limits(path)
