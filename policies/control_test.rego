package tidegate.guard_test

# fra2's claims are two prefixes with bbr, one of them with a window as well; its control hosts are told `claims`.
with_control(claims, hosts) := json.patch(
	with_claims([object.union(bbr("198.51.100.0/24"), window("198.51.100.0/24")), bbr("2001:db8:1:100::/56")]),
	[
		{"op": "replace", "path": "/vars/fra2/control_claims", "value": claims},
		{"op": "replace", "path": "/vars/fra2/control_hosts", "value": hosts},
	],
)

test_control_hosts_may_be_told_a_part if {
	every claims in [
		[],
		[window("198.51.100.0/24")],
		[bbr("2001:db8:1:100::/56")],
		[object.union(bbr("198.51.100.0/24"), window("198.51.100.0/24")), bbr("2001:db8:1:100::/56")],
	] {
		allowed(with_control(claims, ["fra2-edge1"]))
	}
}

test_control_hosts_may_not_be_told_more if {
	every claim in [
		bbr("203.0.113.0/24"),
		window("2001:db8:1:100::/56"),
		window("::/0"),
		object.union(window("198.51.100.0/24"), {"initcwnd": 21}),
		object.union(bbr("198.51.100.0/24"), {"congestion_control": "cubic"}),
		object.union(bbr("198.51.100.0/24"), {"ungated_fallback": true}),
	] {
		document := with_control([claim], ["fra2-edge1"])
		said(document) == {["control_exceeds_claims", "fra2", claim.prefix]}
	}
}

test_what_is_no_claim_is_denied_for_control_hosts_too if {
	every value in [null, 1, "198.51.100.0/24", [], {}, {"congestion_control": "bbr"}] {
		["malformed_claim", "fra2", null] in said(with_control([value], ["fra2-edge1"]))
	}
}

test_a_part_of_a_claim_must_be_a_claim_itself if {
	every claim in [{"prefix": "198.51.100.0/24"}, object.remove(bbr("198.51.100.0/24"), ["congestion_control"])] {
		["malformed_claim", "fra2", "198.51.100.0/24"] in said(with_control([claim], ["fra2-edge1"]))
	}
}

test_a_prefix_is_claimed_once_of_control_hosts_too if {
	twice := [bbr("198.51.100.0/24"), window("198.51.100.0/24")]
	said(with_control(twice, ["fra2-edge1"])) == {["malformed_claim", "fra2", "198.51.100.0/24"]}
}

test_a_control_host_must_be_one_of_the_pop if {
	every host in ["iad1-edge1", "fra2-edge2", "", 1, null, ["fra2-edge1"]] {
		said(with_control([], [host])) == {["unknown_host", "fra2", null]}
	}
}

test_a_control_host_is_named_once if {
	said(with_control([], ["fra2-edge1", "fra2-edge1"])) == {["unknown_host", "fra2", null]}
}
