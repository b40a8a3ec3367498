package tidegate.guard_test

overlapping := [
	"192.0.2.0/26", # the POP's own
	"192.0.2.64/26", # another POP's
	"198.18.255.0/24", # an origin
	"192.0.2.70/32", # within another's
	"192.0.0.0/16", # around both
	"198.18.255.128/25", # within an origin
	"198.18.0.0/16", # around an origin
	"2001:db8:f020::/48",
	"2001:db8:f030:100::/56",
	"2001:db8::/32",
]

test_a_claim_may_not_overlap_what_is_ours if {
	every prefix in overlapping {
		said(with_claims([bbr(prefix)])) == {["own_prefix", "fra2", prefix]}
	}
}

test_a_neighbour_of_what_is_ours_is_allowed if {
	every prefix in ["192.0.2.128/26", "192.0.3.0/24", "198.19.0.0/16", "2001:db8:f021::/48", "2001:db9::/32"] {
		allowed(with_claims([bbr(prefix)]))
	}
}

test_the_message_names_both if {
	some denial in denials(with_claims([bbr("192.0.0.0/16")]))
	denial.message == "`192.0.0.0/16` overlaps `192.0.2.64/26`, which is our own"
}

test_every_pop_that_claims_it_is_named if {
	document := json.patch(plan, [
		{"op": "add", "path": "/vars/fra2/claims/-", "value": bbr("192.0.2.64/27")},
		{"op": "add", "path": "/vars/iad1/claims/-", "value": bbr("192.0.2.64/27")},
	])
	said(document) == {["own_prefix", "fra2", "192.0.2.64/27"], ["own_prefix", "iad1", "192.0.2.64/27"]}
}

test_windows_may_be_set_for_what_is_ours if {
	every prefix in overlapping {
		allowed(with_claims([window(prefix)]))
	}
}

test_an_algorithm_beside_a_window_may_not_reach_what_is_ours if {
	every prefix in overlapping {
		said(with_claims([object.union(bbr(prefix), window(prefix))])) == {["own_prefix", "fra2", prefix]}
	}
}
