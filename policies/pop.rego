package tidegate.guard

# METADATA
# title: Variables are for a POP that the inventory does not have
denials contains {"code": "unknown_pop", "pop": pop, "prefix": null, "message": message} if {
	some pop, _ in input.vars
	not pop in object.keys(input.fleet.pops)
	message := sprintf("`%s` is not a POP of the inventory", [pop])
}

# METADATA
# title: The variables of one POP say that they are another's
denials contains {"code": "pop_mismatch", "pop": pop, "prefix": null, "message": message} if {
	some pop, vars in input.vars
	vars.pop != pop
	message := sprintf("the variables of `%s` were made for `%v`", [pop, vars.pop])
}

# METADATA
# title: POPs are not of one generation
# description: Applying was broken off between two files, or somebody edited one.
denials contains {"code": "mixed_generations", "pop": null, "prefix": null, "message": message} if {
	generations := {vars.generation | some vars in input.vars}
	count(generations) > 1
	message := sprintf("POPs are of %d generations; run `tidegate apply` again", [count(generations)])
}
