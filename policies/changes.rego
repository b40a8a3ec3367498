package tidegate.guard

# METADATA
# title: The account of what changed does not fit the claims
# description: The size of the previous selection is worked out from it, so it must hold.
denials contains {"code": "inconsistent_changes", "pop": pop, "prefix": prefix, "message": message} if {
	some pop, vars in input.vars
	some prefix in vars.changes.added
	not prefix in _claimed[pop]
	message := "the prefix is said to be added, but is not claimed"
}

denials contains {"code": "inconsistent_changes", "pop": pop, "prefix": prefix, "message": message} if {
	some pop, vars in input.vars
	some prefix in vars.changes.removed
	prefix in _claimed[pop]
	message := "the prefix is said to be removed, but is claimed"
}

denials contains {"code": "inconsistent_changes", "pop": pop, "prefix": prefix, "message": message} if {
	some pop, vars in input.vars
	some key in ["added", "removed"]
	some prefix in _repeated(vars.changes[key])
	message := sprintf("the prefix is listed as %s more than once", [key])
}
