package tidegate.guard_test

clients(number) := [bbr(sprintf("203.0.%d.0/24", [net])) | some net in numbers.range(1, number)]

test_a_pop_may_claim_up_to_the_limit if {
	allowed(with_claims(clients(4)))
}

test_a_pop_may_not_claim_more if {
	said(with_claims(clients(5))) == {["prefixes_per_pop", "fra2", null]}
}

# Four claims, `fra2_new` of them new, and one in iad1, which is new.
with_new(fra2_new) := json.patch(with_claims(clients(4)), [
	{"op": "add", "path": "/vars/fra2/changes/added", "value": [claim.prefix | some claim in clients(fra2_new)]},
	{"op": "add", "path": "/vars/iad1/changes/added", "value": ["203.0.113.0/24"]},
])

test_a_run_may_add_up_to_the_limit if {
	allowed(with_new(2))
}

test_a_run_may_not_add_more_over_all_pops if {
	said(with_new(3)) == {["new_prefixes", null, null]}
}
