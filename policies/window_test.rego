package tidegate.guard_test

test_windows_may_reach_their_limits if {
	allowed(with_claims([{"prefix": "198.51.100.0/24", "initcwnd": 100, "initrwnd": 1000}]))
}

test_initcwnd_may_not_pass_its_limit if {
	document := with_claims([{"prefix": "198.51.100.0/24", "initcwnd": 101}])
	said(document) == {["initcwnd", "fra2", "198.51.100.0/24"]}
}

test_initrwnd_may_not_pass_its_limit if {
	document := with_claims([{"prefix": "198.51.100.0/24", "initrwnd": 1001}])
	said(document) == {["initrwnd", "fra2", "198.51.100.0/24"]}
}

test_learned_initcwnd_may_not_pass_the_limit if {
	said(changed("/vars/fra2/learn/initcwnd_max", 101)) == {["initcwnd", "fra2", null]}
}

test_bounds_of_learned_initcwnd_may_meet if {
	allowed(changed("/vars/fra2/learn/initcwnd_max", 10))
}

test_bounds_of_learned_initcwnd_may_not_cross if {
	said(changed("/vars/fra2/learn/initcwnd_max", 9)) == {["initcwnd", "fra2", null]}
}

test_initrwnd_beside_learning_may_reach_its_limit if {
	allowed(changed("/vars/fra2/learn/initrwnd", 1000))
}

test_initrwnd_beside_learning_may_not_pass_its_limit if {
	said(changed("/vars/fra2/learn/initrwnd", 1001)) == {["initrwnd", "fra2", null]}
}

test_a_window_for_everything_may_not_pass_the_limit if {
	document := with_claims([{"prefix": "::/0", "initcwnd": 101}])
	said(document) == {["initcwnd", "fra2", "::/0"]}
}
