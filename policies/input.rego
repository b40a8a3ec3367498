package tidegate.guard

# Types by key of each object that the rules read.
_wanted_input := {"fleet": {"object"}, "kind": {"string"}, "vars": {"object"}}

_wanted_plan := {"as_of": {"string"}, "watermark": {"string"}}

_wanted_fleet := {"origins": {"array"}, "pops": {"object"}, "schema_version": {"number"}}

_wanted_pop := {"groups": {"array"}, "hosts": {"array"}, "own_prefixes": {"array"}}

_wanted_vars := {
	"changes": {"object"},
	"claims": {"array"},
	"control_claims": {"array"},
	"control_hosts": {"array"},
	"generation": {"string"},
	"learn": {"null", "object"},
	"policy_digest": {"string"},
	"pop": {"string"},
	"previous_generation": {"null", "string"},
	"schema_version": {"number"},
	"watermark": {"string"},
}

_wanted_changes := {"added": {"array"}, "removed": {"array"}, "withdrawn": {"array"}}

_wanted_learn := {
	"every_us": {"number"},
	"expire_us": {"number"},
	"initcwnd_max": {"number"},
	"initcwnd_min": {"number"},
	"smooth_ppm": {"number"},
	"toward": {"array"},
}

_wanted_limits := {
	"algorithms": {"array"},
	"empty_min_prefixes": {"number"},
	"initcwnd_max_segments": {"number"},
	"initrwnd_max_segments": {"number"},
	"new_prefixes_per_run_max": {"number"},
	"prefix_length_min_ipv4": {"number"},
	"prefix_length_min_ipv6": {"number"},
	"prefixes_per_pop_max": {"number"},
	"shrink_max_percent": {"number"},
	"shrink_min_prefixes": {"number"},
	"telemetry_max_age_seconds": {"number"},
}

default _root := {}

_root := input if is_object(input)

_types(value) := {key: type_name(each) | some key, each in value}

# Every object that the rules read: its name, the POP it is about, the types that it has and those it must have.
_parts contains {"name": "input", "pop": null, "found": _types(_root), "wanted": _wanted_input}

_parts contains {"name": "input", "pop": null, "found": _types(_root), "wanted": _wanted_plan} if {
	not input.kind == "vars"
}

_parts contains {"name": "fleet", "pop": null, "found": _types(input.fleet), "wanted": _wanted_fleet}

_parts contains {"name": "fleet.pops", "pop": null, "found": _types(input.fleet.pops), "wanted": wanted} if {
	wanted := {pop: {"object"} | some pop, _ in input.fleet.pops}
}

_parts contains {"name": name, "pop": pop, "found": _types(value), "wanted": _wanted_pop} if {
	some pop, value in input.fleet.pops
	name := sprintf("fleet.pops.%s", [pop])
}

_parts contains {"name": "vars", "pop": null, "found": _types(input.vars), "wanted": wanted} if {
	wanted := {pop: {"object"} | some pop, _ in input.vars}
}

_parts contains {"name": name, "pop": pop, "found": _types(vars), "wanted": _wanted_vars} if {
	some pop, vars in input.vars
	name := sprintf("vars.%s", [pop])
}

_parts contains {"name": name, "pop": pop, "found": _types(vars.changes), "wanted": _wanted_changes} if {
	some pop, vars in input.vars
	name := sprintf("vars.%s.changes", [pop])
}

_parts contains {"name": name, "pop": pop, "found": _types(vars.learn), "wanted": _wanted_learn} if {
	some pop, vars in input.vars
	is_object(vars.learn)
	name := sprintf("vars.%s.learn", [pop])
}

default _limits := {}

_limits := data.limits if is_object(data.limits)

_parts contains {"name": "limits", "pop": null, "found": _types(_limits), "wanted": _wanted_limits}

# METADATA
# title: A key that a rule reads is missing
# description: An undefined key would leave a rule without a match, which looks like consent.
denials contains {"code": "missing_input", "pop": part.pop, "prefix": null, "message": message} if {
	some part in _parts
	some key, _ in part.wanted
	not key in object.keys(part.found)
	message := sprintf("`%s` lacks the key `%s`", [part.name, key])
}

# METADATA
# title: There is nothing to judge, or nothing to judge it by
denials contains {"code": "missing_input", "pop": null, "prefix": null, "message": message} if {
	some [message, found] in [
		["`vars` names no POP", object.get(_root, "vars", {})],
		["`fleet` names no own prefix", _own],
		["`limits` lists no algorithm in `algorithms`", object.get(_limits, "algorithms", [])],
	]
	not count(found) > 0
}

# METADATA
# title: A value has another type than the rules read
denials contains {"code": "malformed_input", "pop": part.pop, "prefix": null, "message": message} if {
	some part in _parts
	some key, type in part.found
	key in object.keys(part.wanted)
	not type in part.wanted[key]
	message := sprintf("`%s.%s` is of type %s, not %s", [part.name, key, type, concat(" or ", part.wanted[key])])
}
