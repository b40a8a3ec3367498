package tidegate.guard

# METADATA
# title: The account of what changed does not fit the claims
# description: The size of the previous selection is worked out from it, so it must hold.
denials contains {"code": "inconsistent_changes", "pop": pop, "prefix": prefix, "message": message} if {
	some pop, vars in input.vars
	some prefix in vars.changes.added
	not prefix in _steered[pop]
	message := "the prefix is said to be added, but no claim gives it an algorithm"
}

denials contains {"code": "inconsistent_changes", "pop": pop, "prefix": prefix, "message": message} if {
	some pop, vars in input.vars
	some prefix in vars.changes.removed
	prefix in _steered[pop]
	message := "the prefix is said to be removed, but a claim gives it an algorithm"
}

# What is withdrawn does not count as lost, so it must have been there and be gone.
denials contains {"code": "inconsistent_changes", "pop": pop, "prefix": prefix, "message": message} if {
	some pop, vars in input.vars
	some prefix in vars.changes.withdrawn
	not prefix in vars.changes.removed
	message := "the prefix is said to be withdrawn, but not to be removed"
}

denials contains {"code": "inconsistent_changes", "pop": pop, "prefix": prefix, "message": message} if {
	some pop, vars in input.vars
	some key in ["added", "removed", "withdrawn"]
	some prefix in _repeated(vars.changes[key])
	message := sprintf("the prefix is listed as %s more than once", [key])
}
