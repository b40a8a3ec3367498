# Prefixes as text: family, length, canonical form, and the network of another length around an address.
package tidegate.guard

# `net.cidr_merge` of one network gives it without host bits in the one form of RFC 5952, and an IPv4-mapped one as
# IPv4; so what differs from it is not canonical, and what it refuses is no network.
_is_prefix(value) if net.cidr_merge([value]) == {value}

_family(prefix) := "ipv6" if contains(prefix, ":")

_family(prefix) := "ipv4" if not contains(prefix, ":")

_length(prefix) := to_number(split(prefix, "/")[1])

# The network of `length` bits that holds the prefix; undefined where the prefix is wider.
_network(prefix, length) := network if {
	length <= _length(prefix)
	some network in net.cidr_merge([sprintf("%s/%d", [split(prefix, "/")[0], length])])
}

# Lengths that occur, by family: a handful among thousands of prefixes.
_lengths(prefixes) := {family: lengths |
	some family in {"ipv4", "ipv6"}
	lengths := {_length(prefix) | some prefix in prefixes; _family(prefix) == family}
}

# The well-formed prefixes that a POP gives an algorithm. A claim that only sets windows reaches as far as it says: they
# cost a first flight at most, and are bounded by the limits.
_steered[pop] := prefixes if {
	some pop, vars in input.vars
	prefixes := {claim.prefix | some claim in vars.claims; _steers(claim); _is_prefix(claim.prefix)}
}

_steers(claim) if "congestion_control" in object.keys(claim)

# What belongs to the fleet itself.
_own contains prefix if {
	some pop in input.fleet.pops
	some prefix in pop.own_prefixes
	_is_prefix(prefix)
}

_own contains prefix if {
	some prefix in input.fleet.origins
	_is_prefix(prefix)
}
