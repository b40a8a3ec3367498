package tidegate.guard_test

import data.tidegate.guard

test_every_listed_algorithm_is_allowed if {
	every algorithm in limits.algorithms {
		allowed(with_claims([{"prefix": "198.51.100.0/24", "congestion_control": algorithm}]))
	}
}

test_other_algorithms_are_denied if {
	every algorithm in ["vegas", "BBR", "bbr ", ""] {
		document := with_claims([{"prefix": "198.51.100.0/24", "congestion_control": algorithm}])
		said(document) == {["unknown_algorithm", "fra2", "198.51.100.0/24"]}
	}
}

# A list that cannot be printed as text must not swallow the denial.
test_a_list_of_odd_things_allows_nothing if {
	odd := object.union(limits, {"algorithms": [false, 1]})
	not guard.allow with input as plan with data.limits as odd
}
