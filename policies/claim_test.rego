package tidegate.guard_test

test_every_key_of_a_claim_is_taken if {
	allowed(with_claims([
		{"prefix": "198.51.100.0/24", "congestion_control": "cubic"},
		{"prefix": "198.51.100.0/25", "initcwnd": 10},
		{"prefix": "203.0.113.0/24", "initrwnd": 20},
		object.union(bbr("2001:db8:1:100::/56"), {"initcwnd": 1, "initrwnd": 1}),
	]))
}

test_a_prefix_must_be_canonical if {
	every value in not_canonical {
		some denial in denials(with_claims([bbr(value)]))
		denial.code == "malformed_claim"
		denial.pop == "fra2"
	}
}

odd_values := [
	{"congestion_control": null},
	{"congestion_control": 3},
	{"min_bytes": -1},
	{"min_bytes": 1.5},
	{"min_bytes": "100000"},
	{"ungated_fallback": "no"},
	{"initcwnd": 0},
	{"initcwnd": "10"},
	{"initrwnd": 0.5},
	{"initrwnd": null},
	{"lock": true},
]

test_a_value_that_its_key_does_not_take_is_denied if {
	every odd in odd_values {
		document := with_claims([object.union(bbr("198.51.100.0/24"), odd)])
		["malformed_claim", "fra2", "198.51.100.0/24"] in said(document)
	}
}

test_what_is_no_claim_is_denied if {
	every value in [null, 1, "198.51.100.0/24", [], {}, {"congestion_control": "bbr"}] {
		document := with_claims([value])
		["malformed_claim", "fra2", null] in said(document)
		not allowed(document)
	}
}

test_a_claim_must_ask_for_something if {
	said(with_claims([{"prefix": "198.51.100.0/24"}])) == {["malformed_claim", "fra2", "198.51.100.0/24"]}
}

test_a_threshold_needs_its_algorithm if {
	claim := {"prefix": "198.51.100.0/24", "initcwnd": 10, "min_bytes": 1}
	said(with_claims([claim])) == {["malformed_claim", "fra2", "198.51.100.0/24"]}
}

test_a_fallback_needs_its_threshold if {
	claim := {"prefix": "198.51.100.0/24", "congestion_control": "bbr", "ungated_fallback": true}
	said(with_claims([claim])) == {["malformed_claim", "fra2", "198.51.100.0/24"]}
}

test_a_prefix_is_claimed_once if {
	claims := [bbr("198.51.100.0/24"), bbr("203.0.113.0/24"), {"prefix": "198.51.100.0/24", "initcwnd": 10}]
	said(with_claims(claims)) == {["malformed_claim", "fra2", "198.51.100.0/24"]}
}
