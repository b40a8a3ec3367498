package tidegate.guard

_is_whole_number(value) if value == floor(value)

# The rules count in nanoseconds since 1970; RFC 3339 in UTC, to the second.
_is_time(value) if {
	endswith(value, "Z")
	time.parse_rfc3339_ns(value) > 0
}

# METADATA
# title: The kind of input is unknown
denials contains {"code": "malformed_input", "pop": null, "prefix": null, "message": message} if {
	not input.kind in {"plan", "vars"}
	message := sprintf("`kind` is `%v`, not `plan` or `vars`", [object.get(_root, "kind", null)])
}

# METADATA
# title: The rules were written for another version of the contract
denials contains {"code": "malformed_input", "pop": pop, "prefix": null, "message": message} if {
	some pop, vars in input.vars
	vars.schema_version != 1
	message := sprintf("`vars.%s.schema_version` is %v; these rules read version 1", [pop, vars.schema_version])
}

denials contains {"code": "malformed_input", "pop": null, "prefix": null, "message": message} if {
	input.fleet.schema_version != 1
	message := sprintf("`fleet.schema_version` is %v; these rules read version 1", [input.fleet.schema_version])
}

# METADATA
# title: A time is not one
denials contains {"code": "malformed_input", "pop": null, "prefix": null, "message": message} if {
	input.kind == "plan"
	some key in ["as_of", "watermark"]
	not _is_time(input[key])
	message := sprintf("`%s` is `%v`, not a time in UTC as in 2026-11-20T06:00:00Z", [key, input[key]])
}

# METADATA
# title: A limit is not a whole number of at least 0
denials contains {"code": "malformed_input", "pop": null, "prefix": null, "message": message} if {
	some key, types in _wanted_limits
	"number" in types
	value := data.limits[key]
	not _is_limit(value)
	message := sprintf("`limits.%s` is `%v`, not a whole number of at least 0", [key, value])
}

_is_limit(value) if {
	_is_whole_number(value)
	value >= 0
}

# METADATA
# title: A learning setting is not a whole number of at least 1
denials contains {"code": "malformed_input", "pop": pop, "prefix": null, "message": message} if {
	some pop, vars in input.vars
	some key, types in _wanted_learn
	"number" in types
	value := vars.learn[key]
	not _is_setting(value)
	message := sprintf("`vars.%s.learn.%s` is `%v`, not a whole number of at least 1", [pop, key, value])
}

_is_setting(value) if {
	_is_whole_number(value)
	value >= 1
}

# METADATA
# title: What a learning setting may add is not of its form
# description: A hold-out of everything would learn for nobody.
denials contains {"code": "malformed_input", "pop": pop, "prefix": null, "message": message} if {
	some pop, vars in input.vars
	some key, form in _learn_options
	value := vars.learn[key]
	not _is_learn_option(key, value)
	message := sprintf("`vars.%s.learn.%s` is `%v`, not %s", [pop, key, value, form])
}

_learn_options := {
	"hold_out_ppm": "a whole number from 0 to 999999",
	"initrwnd": "a whole number of at least 1",
}

_is_learn_option("hold_out_ppm", value) if {
	_is_limit(value)
	value < 1000000
}

_is_learn_option("initrwnd", value) if _is_setting(value)

# METADATA
# title: A list of prefixes holds something else
# description: Only canonical prefixes can be compared as text, which the other rules do.
denials contains {"code": "malformed_input", "pop": list.pop, "prefix": null, "message": message} if {
	some list in _prefix_lists
	some value in list.values
	not _is_prefix(value)
	message := sprintf("`%s` holds `%v`, not a network in canonical form", [list.name, value])
}

_prefix_lists contains {"name": "fleet.origins", "pop": null, "values": input.fleet.origins}

_prefix_lists contains {"name": name, "pop": pop, "values": value.own_prefixes} if {
	some pop, value in input.fleet.pops
	name := sprintf("fleet.pops.%s.own_prefixes", [pop])
}

_prefix_lists contains {"name": name, "pop": pop, "values": values} if {
	some pop, vars in input.vars
	some key, values in vars.changes
	name := sprintf("vars.%s.changes.%s", [pop, key])
}

_prefix_lists contains {"name": name, "pop": pop, "values": vars.learn.toward} if {
	some pop, vars in input.vars
	name := sprintf("vars.%s.learn.toward", [pop])
}
