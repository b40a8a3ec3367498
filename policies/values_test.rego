package tidegate.guard_test

malformed_input := {["malformed_input", null, null]}

malformed_input_of(pop) := {["malformed_input", pop, null]}

test_an_unknown_kind_is_denied if {
	said(changed("/kind", "rollout")) == malformed_input
}

test_another_version_of_the_contracts_is_denied if {
	said(changed("/vars/fra2/schema_version", 2)) == malformed_input_of("fra2")
	said(changed("/fleet/schema_version", 2)) == malformed_input
}

test_a_time_that_is_none_is_denied if {
	every key in ["/as_of", "/watermark"] {
		every value in ["", "yesterday", "2026-13-45T00:00:00Z", "2026-11-20T06:00:00+01:00", "9999-01-01T00:00:00Z"] {
			said(changed(key, value)) == malformed_input
		}
	}
}

test_a_learning_setting_must_be_a_whole_positive_number if {
	every key in ["initcwnd_min", "smooth_ppm", "every_us", "expire_us"] {
		every value in [0, -1, 1.5] {
			said(changed(sprintf("/vars/fra2/learn/%s", [key]), value)) == malformed_input_of("fra2")
		}
	}
}

test_what_a_learning_setting_may_add_must_be_of_its_form if {
	wrong := {"hold_out_ppm": [-1, 0.5, 1000000, "0", null], "initrwnd": [0, -1, 1.5, "1", null]}
	every key, values in wrong {
		every value in values {
			malformed_input_of("fra2") & said(changed(sprintf("/vars/fra2/learn/%s", [key]), value)) != set()
		}
	}
}

test_any_share_but_all_of_the_destinations_may_be_held_out if {
	every value in [0, 1, 999999] {
		allowed(changed("/vars/fra2/learn/hold_out_ppm", value))
	}
}

not_canonical := [
	"198.51.100.1/24",
	"198.51.100.0",
	"198.51.100.0/33",
	"198.51.100.0/024",
	"198.51.0100.0/24",
	"2001:DB8::/32",
	"2001:db8:0::/48",
	"::ffff:198.51.100.0/120",
	"198.51.100.0/24\n",
	" 198.51.100.0/24",
	"example.net/24",
	"",
	"/",
	7,
	null,
]

test_prefixes_must_be_canonical_wherever_they_stand if {
	every value in not_canonical {
		malformed_input_of("iad1") & said(changed("/fleet/pops/iad1/own_prefixes/-", value)) != set()
		malformed_input & said(changed("/fleet/origins/-", value)) != set()
		malformed_input_of("fra2") & said(changed("/vars/fra2/learn/toward/-", value)) != set()
		malformed_input_of("fra2") & said(changed("/vars/fra2/changes/removed/-", value)) != set()
	}
}
