package tidegate.guard

# Claims of the previous generation.
_previous(vars) := (count(vars.claims) - count(vars.changes.added)) + count(vars.changes.removed)

# METADATA
# title: A POP loses all its claims at once
# description: Telemetry that stopped looks like a network without slow clients.
denials contains {"code": "empty_selection", "pop": pop, "prefix": null, "message": message} if {
	some pop, vars in input.vars
	count(vars.claims) == 0
	previous := _previous(vars)
	previous > 0
	previous >= data.limits.empty_min_prefixes
	message := sprintf("nothing is claimed any more, after %d prefixes", [previous])
}

# METADATA
# title: A POP loses many of its claims at once
denials contains {"code": "shrunk_selection", "pop": pop, "prefix": null, "message": message} if {
	some pop, vars in input.vars
	now := count(vars.claims)
	now > 0
	previous := _previous(vars)
	previous >= data.limits.shrink_min_prefixes
	(previous - now) * 100 > data.limits.shrink_max_percent * previous
	message := sprintf(
		"%d prefixes are claimed, after %d: more than %d%% less",
		[now, previous, data.limits.shrink_max_percent],
	)
}
