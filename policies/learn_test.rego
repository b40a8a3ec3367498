package tidegate.guard_test

test_learning_may_be_off if {
	allowed(changed("/vars/fra2/learn", null))
}

test_learning_toward_the_other_pops_is_allowed if {
	allowed(changed("/vars/fra2/learn/toward", fleet.pops.iad1.own_prefixes))
}

test_learning_toward_an_origin_is_allowed if {
	allowed(changed("/vars/fra2/learn/toward/-", "198.18.255.0/24"))
}

test_learning_toward_anything_else_is_denied if {
	every prefix in ["192.0.2.0/26", "198.51.100.0/24", "198.18.255.0/25", "192.0.2.64/27", "192.0.2.0/25", "0.0.0.0/0"] {
		said(changed("/vars/fra2/learn/toward/-", prefix)) == {["learn_outside_fleet", "fra2", prefix]}
	}
}
