"""Settings as bytes for the kernel, without and with it."""

import struct
from ipaddress import IPv4Network, IPv6Network, ip_network

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st
from tidegate_edge.errors import Failure
from tidegate_edge.steer.bpf import layout, program, steered
from tidegate_edge.steer.claims import Settings


def prefixes(kind, bits):
    return st.integers(0, bits).flatmap(
        lambda length: st.integers(0, (1 << length) - 1).map(lambda net: kind((net << bits - length, length)))
    )


def of_clients(prefix):
    mapped = IPv6Network("::ffff:0:0/96")
    return prefix != layout.NO_CLIENT and not (prefix.version == 6 and prefix.subnet_of(mapped))


PREFIXES = (prefixes(IPv4Network, 32) | prefixes(IPv6Network, 128)).filter(of_clients)
SEGMENTS = st.none() | st.integers(1, 65_535)
SETTINGS = st.builds(
    Settings,
    st.none() | st.from_regex(r"[a-z][a-z0-9_]{0,14}", fullmatch=True),
    SEGMENTS,
    SEGMENTS,
    st.integers(0, (1 << 64) - 1),
)
# Of linux/bpf_common.h and linux/bpf.h.
CLASS, ST, STX, SIZE, DOUBLE_WORD, FRAME = 0x07, 0x02, 0x03, 0x18, 0x18, 10
GENERATIONS = st.from_regex(r"[0-9a-f]{16}", fullmatch=True)


@examples(deadline=None)
@given(PREFIXES, SETTINGS, GENERATIONS, st.booleans())
def test_settings_come_back_from_their_bytes(prefix, settings, generation, per_request):
    key = layout.encode_prefix(prefix)
    value = key + layout.encode_settings(settings, generation, per_request=per_request)
    assert (len(key), len(value)) == (layout.KEY_SIZE, layout.VALUE_SIZE)
    assert layout.decode_prefix(key) == prefix
    assert layout.decode_settings(value) == (prefix, settings, generation)


@examples(deadline=None)
@given(PREFIXES, PREFIXES)
def test_a_prefix_covers_another_where_its_bits_begin_it(outer, inner):
    lengths = [int.from_bytes(layout.encode_prefix(each)[:4], "little") for each in (outer, inner)]
    bits = [int.from_bytes(layout.encode_prefix(each)[4:]) >> 128 - lengths[0] for each in (outer, inner)]
    begins = lengths[0] <= lengths[1] and bits[0] == bits[1]
    if outer.version == inner.version:
        assert begins == inner.subnet_of(outer)
    else:
        assert begins <= (outer.version == 6)  # such as ::/0, which the program passes over


@pytest.mark.root
@examples(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(PREFIXES, SETTINGS, max_size=40), GENERATIONS)
def test_what_is_applied_is_what_is_read_back(ground, settings, generation):
    backend = ground.backend()
    if not backend.standing().attached:
        backend.attach()
    backend.apply(generation, settings)
    held = backend.read()
    assert (held.generation, held.settings) == (generation, settings)
    assert held.counters.keys() == settings.keys()


@pytest.mark.parametrize(
    ("prefix", "help_"),
    [("::ffff:198.51.100.0/120", "claim 198.51.100.0/24"), ("::/128", "leave the claim out")],
)
def test_a_prefix_of_no_ipv6_clients_is_refused(prefix, help_):
    with pytest.raises(Failure, match=f"{ip_network(prefix)} is no prefix") as failure:
        layout.encode_prefix(ip_network(prefix))
    assert failure.value.help == help_


@pytest.mark.parametrize("name", ["", "0123456789abcdef0", "für", "a\0b"])
def test_a_generation_that_the_kernel_cannot_name_is_refused(name):
    with pytest.raises(Failure, match="can't be told to the kernel"):
        layout.encode_generation(name)


@pytest.mark.parametrize(
    "settings", [Settings("a" * 16), Settings(None, 1 << 31), Settings("bbr", None, None, 1 << 64)]
)
def test_a_value_too_large_is_refused(settings):
    with pytest.raises(Failure, match="more than the kernel can hold"):
        layout.encode_settings(settings, "g", per_request=False)


@pytest.mark.parametrize("path", [program.OBJECT, steered.OBJECT], ids=lambda path: path.name)
def test_objects_have_no_constants_whose_types_linux_5_10_refuses(path):
    if not path.is_file():
        pytest.skip("no clang: no BPF objects")
    assert b"\0.rodata" not in path.read_bytes()


def instructions(elf):
    """Those of both programs, the ELF section `sockops` (elf(5))."""
    table, size, number, names = struct.unpack_from("<Q10xHHH", elf, 40)
    sections = [struct.unpack_from("<I20xQQ", elf, table + at * size) for at in range(number)]
    strings = sections[names][1]
    (found,) = [
        elf[offset : offset + length]
        for name, offset, length in sections
        if elf.startswith(b"sockops\0", strings + name)
    ]
    return found


def test_the_stack_is_written_by_eight_bytes_which_linux_6_1_demands_of_those_without_cap_perfmon():
    if not program.OBJECT.is_file():
        pytest.skip("no clang: no BPF objects")
    stores = {
        (code, register, offset)
        for code, registers, offset, _ in struct.iter_unpack(
            "<BBhi", instructions(program.OBJECT.read_bytes())
        )
        if code & CLASS in {ST, STX} and (register := registers & 0xF) == FRAME and code & SIZE != DOUBLE_WORD
    }
    assert stores == set()
