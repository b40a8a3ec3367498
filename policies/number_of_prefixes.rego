package tidegate.guard

# METADATA
# title: A POP claims too many prefixes
denials contains {"code": "prefixes_per_pop", "pop": pop, "prefix": null, "message": message} if {
	some pop, vars in input.vars
	count(vars.claims) > data.limits.prefixes_per_pop_max
	message := sprintf("%d prefixes are claimed, more than %d", [count(vars.claims), data.limits.prefixes_per_pop_max])
}

# METADATA
# title: One run adds too many prefixes
denials contains {"code": "new_prefixes", "pop": null, "prefix": null, "message": message} if {
	added := sum([count(vars.changes.added) | some vars in input.vars])
	added > data.limits.new_prefixes_per_run_max
	message := sprintf(
		"%d prefixes are new over all POPs, more than %d in one run",
		[added, data.limits.new_prefixes_per_run_max],
	)
}
