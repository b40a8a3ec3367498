package tidegate.guard

# METADATA
# title: A POP learns windows toward a network that is neither another POP's nor an origin
# description: |
#   What is learned from the back office must not reach a client. A prefix counts only as the inventory writes it:
#   a part of one or a union of two is nobody's promise.
denials contains {"code": "learn_outside_fleet", "pop": pop, "prefix": prefix, "message": message} if {
	some pop, vars in input.vars
	some prefix in vars.learn.toward
	not prefix in input.fleet.origins
	not _belongs_to_another(prefix, pop)
	message := sprintf("`%v` is neither an own prefix of another POP nor an origin", [prefix])
}

_belongs_to_another(prefix, pop) if {
	some other in _owners[prefix]
	other != pop
}

_owners[prefix] contains pop if {
	some pop, value in input.fleet.pops
	some prefix in value.own_prefixes
}
