package tidegate.guard

# METADATA
# title: A claim names an algorithm that hosts may not have
denials contains {"code": "unknown_algorithm", "pop": pop, "prefix": _claim_name(claim), "message": message} if {
	some pop, vars in input.vars
	some claim in vars.claims
	algorithm := claim.congestion_control
	not algorithm in data.limits.algorithms
	message := sprintf("`%v` is not one of %v", [algorithm, data.limits.algorithms])
}
