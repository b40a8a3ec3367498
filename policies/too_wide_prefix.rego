package tidegate.guard

# METADATA
# title: A claim gives an algorithm to more than was measured, or to everything
denials contains {"code": "too_wide_prefix", "pop": pop, "prefix": prefix, "message": message} if {
	some pop, prefixes in _steered
	some prefix in prefixes
	shortest := _shortest[_family(prefix)]
	_length(prefix) < shortest
	message := sprintf("`%s` is wider than a /%d", [prefix, shortest])
}

# No limit lets a default route through.
_shortest := {
	"ipv4": max({1, data.limits.prefix_length_min_ipv4}),
	"ipv6": max({1, data.limits.prefix_length_min_ipv6}),
}
