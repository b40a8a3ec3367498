package tidegate.guard

# METADATA
# title: Control hosts are told more than the others
# description: |
#   What they are told is part of `claims`, key by key, so that whatever the other rules judge of those holds of it.
denials contains {"code": "control_exceeds_claims", "pop": pop, "prefix": _claim_name(claim), "message": message} if {
	some pop, vars in input.vars
	some claim in vars.control_claims
	some key, value in claim
	not [claim.prefix, key, value] in _said[pop]
	message := sprintf("control hosts are told `%s: %v`, the others are not", [key, value])
}

_said[pop] contains [claim.prefix, key, value] if {
	some pop, vars in input.vars
	count(vars.control_claims) > 0
	some claim in vars.claims
	some key, value in claim
}

# METADATA
# title: A control host is not one of the POP
# description: Nobody would be control under a name that no host has, and the trial would compare nothing.
denials contains {"code": "unknown_host", "pop": pop, "prefix": null, "message": message} if {
	some pop, vars in input.vars
	some host in vars.control_hosts
	not host in input.fleet.pops[pop].hosts
	message := sprintf("`%v` is not a host of `%s`", [host, pop])
}

denials contains {"code": "unknown_host", "pop": pop, "prefix": null, "message": message} if {
	some pop, vars in input.vars
	some host in _repeated(vars.control_hosts)
	message := sprintf("`%v` is a control host more than once", [host])
}
