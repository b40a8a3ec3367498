package tidegate.guard_test

test_a_pop_outside_the_inventory_is_denied if {
	document := changed("/vars/xyz1", json.patch(vars_of("xyz1", [], []), [{
		"op": "replace",
		"path": "/learn",
		"value": null,
	}]))
	said(document) == {["unknown_pop", "xyz1", null]}
}

test_variables_of_another_pop_are_denied if {
	said(changed("/vars/fra2/pop", "iad1")) == {["pop_mismatch", "fra2", null]}
}

test_a_mix_of_generations_is_denied if {
	said(changed("/vars/fra2/generation", "fedcba9876543210")) == {["mixed_generations", null, null]}
}

test_some_pops_of_the_inventory_are_enough if {
	allowed(json.remove(plan, ["vars/iad1"]))
}
