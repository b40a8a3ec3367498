package tidegate.guard

# METADATA
# title: A claim gives an algorithm to a prefix of the fleet itself
# description: |
#   Client rules must not reach traffic between POPs or to an origin, whichever of the two is the wider.
denials contains {"code": "own_prefix", "pop": pop, "prefix": prefix, "message": message} if {
	some [prefix, own] in _overlaps
	some pop, prefixes in _steered
	prefix in prefixes
	message := sprintf("`%s` overlaps `%s`, which is our own", [prefix, own])
}

# Two networks overlap where one holds the other, so it is enough to widen each to the lengths that the other side
# has and to look it up: thousands of claims times a few lengths, not times thousands of own prefixes.
_overlaps contains [prefix, own] if {
	lengths := _lengths(_own)
	some prefix in _all_steered
	some length in lengths[_family(prefix)]
	own := _network(prefix, length)
	own in _own
}

_overlaps contains [prefix, own] if {
	lengths := _lengths(_all_steered)
	some own in _own
	some length in lengths[_family(own)]
	prefix := _network(own, length)
	prefix in _all_steered
}

_all_steered := union({prefixes | some prefixes in _steered})
