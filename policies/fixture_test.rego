# A small fleet whose plan nothing speaks against; each test changes one thing in it.
package tidegate.guard_test

import data.tidegate.guard

limits := {
	"algorithms": ["bbr", "cubic"],
	"empty_min_prefixes": 1,
	"initcwnd_max_segments": 100,
	"initrwnd_max_segments": 1000,
	"new_prefixes_per_run_max": 3,
	"prefix_length_min_ipv4": 16,
	"prefix_length_min_ipv6": 32,
	"prefixes_per_pop_max": 4,
	"shrink_max_percent": 50,
	"shrink_min_prefixes": 4,
	"telemetry_max_age_seconds": 3600,
}

fleet := {
	"schema_version": 1,
	"origins": ["198.18.255.0/24"],
	"pops": {
		"fra2": {
			"groups": ["europe"],
			"hosts": ["fra2-edge1"],
			"own_prefixes": ["192.0.2.0/26", "2001:db8:f020::/48"],
		},
		"iad1": {
			"groups": ["americas"],
			"hosts": ["iad1-edge1"],
			"own_prefixes": ["192.0.2.64/26", "2001:db8:f030::/48"],
		},
	},
}

vars_of(pop, claims, toward) := {
	"schema_version": 1,
	"pop": pop,
	"generation": "0123456789abcdef",
	"previous_generation": null,
	"policy_digest": "sha256:00",
	"watermark": "2026-11-20T05:55:00Z",
	"claims": claims,
	"learn": {
		"toward": toward,
		"initcwnd_min": 10,
		"initcwnd_max": 100,
		"smooth_ppm": 500000,
		"every_us": 1000000,
		"expire_us": 600000000,
	},
	"control_claims": [],
	"control_hosts": [],
	"changes": {"added": [], "removed": [], "withdrawn": []},
}

window(prefix) := {"prefix": prefix, "initcwnd": 20}

bbr(prefix) := {"prefix": prefix, "congestion_control": "bbr", "min_bytes": 100000, "ungated_fallback": false}

plan := {
	"kind": "plan",
	"as_of": "2026-11-20T06:00:00Z",
	"watermark": "2026-11-20T05:55:00Z",
	"fleet": fleet,
	"vars": {
		"fra2": vars_of("fra2", [bbr("198.51.100.0/24"), bbr("2001:db8:1:100::/56")], ["192.0.2.64/26"]),
		"iad1": vars_of("iad1", [bbr("203.0.113.0/24")], ["192.0.2.0/26", "2001:db8:f020::/48"]),
	},
}

# The plan with one value put in another's place, or where none is.
changed(path, value) := json.patch(plan, [{"op": "add", "path": path, "value": value}])

with_claims(claims) := changed("/vars/fra2/claims", claims)

denials(document) := found if {
	found := guard.denials with input as document with data.limits as limits
}

allowed(document) if guard.allow with input as document with data.limits as limits

# [code, pop, prefix] of each denial.
said(document) := {[denial.code, denial.pop, denial.prefix] | some denial in denials(document)}
