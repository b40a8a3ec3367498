package tidegate.guard

# Prefixes with an algorithm, now and in the previous generation. What was withdrawn is left out of that: a schedule
# that ends and a guard that aborts take everything away, and say nothing of telemetry.
_now(vars) := count([claim | some claim in vars.claims; _steers(claim)])

_previous(vars) := ((_now(vars) - count(vars.changes.added)) + count(vars.changes.removed)) - count(vars.changes.withdrawn)

# METADATA
# title: A POP loses all its selected prefixes at once
# description: Telemetry that stopped looks like a network without slow clients.
denials contains {"code": "empty_selection", "pop": pop, "prefix": null, "message": message} if {
	some pop, vars in input.vars
	_now(vars) == 0
	previous := _previous(vars)
	previous > 0
	previous >= data.limits.empty_min_prefixes
	message := sprintf("no prefix is selected any more, after %d", [previous])
}

# METADATA
# title: A POP loses many of its selected prefixes at once
denials contains {"code": "shrunk_selection", "pop": pop, "prefix": null, "message": message} if {
	some pop, vars in input.vars
	now := _now(vars)
	now > 0
	previous := _previous(vars)
	previous >= data.limits.shrink_min_prefixes
	(previous - now) * 100 > data.limits.shrink_max_percent * previous
	message := sprintf(
		"%d prefixes are selected, after %d: more than %d%% less",
		[now, previous, data.limits.shrink_max_percent],
	)
}
