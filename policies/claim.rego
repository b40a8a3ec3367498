package tidegate.guard

_is_field("prefix", value) if _is_prefix(value)

_is_field("congestion_control", value) if is_string(value)

_is_field("min_bytes", value) if _is_limit(value)

_is_field("ungated_fallback", value) if is_boolean(value)

_is_field("initcwnd", value) if _is_setting(value)

_is_field("initrwnd", value) if _is_setting(value)

_actions := {"congestion_control", "initcwnd", "initrwnd"}

_needed_by := {"min_bytes": "congestion_control", "ungated_fallback": "min_bytes"}

# A host is told one of the two.
_claim_lists := ["claims", "control_claims"]

# What a denial calls the claim by.
_claim_name(claim) := claim.prefix if is_string(claim.prefix)

_claim_name(claim) := null if not is_string(claim.prefix)

# METADATA
# title: A claim has a key that is unknown, or a value that its key does not take
denials contains {"code": "malformed_claim", "pop": pop, "prefix": _claim_name(claim), "message": message} if {
	some pop, vars in input.vars
	some list in _claim_lists
	some claim in vars[list]
	some key, value in claim
	not _is_field(key, value)
	message := sprintf("`%s: %v` is not something that a claim can say", [key, value])
}

# METADATA
# title: A claim has no prefix, or is no object
denials contains {"code": "malformed_claim", "pop": pop, "prefix": null, "message": message} if {
	some pop, vars in input.vars
	some list in _claim_lists
	some number, claim in vars[list]
	not claim.prefix
	message := sprintf("`%s[%d]` has no prefix", [list, number])
}

# METADATA
# title: A claim asks for nothing
denials contains {"code": "malformed_claim", "pop": pop, "prefix": _claim_name(claim), "message": message} if {
	some pop, vars in input.vars
	some list in _claim_lists
	some claim in vars[list]
	not _acts(claim)
	message := "the claim sets neither congestion control nor a window"
}

_acts(claim) if {
	some key in _actions
	key in object.keys(claim)
}

# METADATA
# title: A claim lacks what another of its keys needs
denials contains {"code": "malformed_claim", "pop": pop, "prefix": _claim_name(claim), "message": message} if {
	some pop, vars in input.vars
	some list in _claim_lists
	some claim in vars[list]
	some key, needed in _needed_by
	key in object.keys(claim)
	not needed in object.keys(claim)
	message := sprintf("`%s` means nothing without `%s`", [key, needed])
}

# METADATA
# title: A prefix is claimed twice in a POP
# description: The agent keeps one claim a prefix, and which of two it keeps is not for chance to say.
denials contains {"code": "malformed_claim", "pop": pop, "prefix": prefix, "message": message} if {
	some pop, vars in input.vars
	some list in _claim_lists
	some prefix in _repeated([claim.prefix | some claim in vars[list]])
	message := "the prefix is claimed more than once"
}

# Neighbours in order that are equal.
_repeated(list) := {value |
	ordered := sort(list)
	some place, value in ordered
	value == ordered[place + 1]
}
