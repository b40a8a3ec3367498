package tidegate.guard_test

import data.tidegate.guard

test_a_claim_may_not_be_wider_than_the_limits if {
	every prefix in ["203.0.0.0/15", "128.0.0.0/1", "3ffe::/31", "8000::/1"] {
		["too_wide_prefix", "fra2", prefix] in said(with_claims([bbr(prefix)]))
	}
}

test_a_claim_may_be_as_wide_as_the_limits if {
	allowed(with_claims([bbr("203.0.0.0/16"), bbr("3fff::/32")]))
}

test_no_limit_lets_a_default_route_through if {
	none := object.union(limits, {"prefix_length_min_ipv4": 0, "prefix_length_min_ipv6": 0})
	every prefix in ["0.0.0.0/0", "::/0"] {
		document := with_claims([bbr(prefix)])
		some denial in guard.denials with input as document with data.limits as none
		denial.code == "too_wide_prefix"
		denial.prefix == prefix
	}
}

test_windows_may_be_set_for_everything if {
	allowed(with_claims([window("0.0.0.0/0"), window("::/0")]))
}

test_a_wide_claim_may_not_set_an_algorithm_beside_a_window if {
	every prefix in ["203.0.0.0/15", "::/0"] {
		document := with_claims([object.union(bbr(prefix), window(prefix))])
		["too_wide_prefix", "fra2", prefix] in said(document)
	}
}
