package tidegate.guard_test

import data.tidegate.guard

test_a_good_plan_is_allowed if {
	denials(plan) == set()
	allowed(plan)
}

test_good_variables_are_allowed_without_times if {
	allowed(json.patch(json.remove(plan, ["as_of", "watermark"]), [{"op": "replace", "path": "/kind", "value": "vars"}]))
}

test_one_denial_is_enough if {
	document := changed("/vars/fra2/claims/0/congestion_control", "vegas")
	count(denials(document)) == 1
	not allowed(document)
}

test_no_input_is_denied if {
	not guard.allow
	some denial in guard.denials
	denial.code == "missing_input"
}

test_input_of_another_type_is_denied if {
	every document in [null, 1, "plan", [], {}, true] {
		not allowed(document)
		["missing_input", null, null] in said(document)
	}
}

test_every_denial_has_the_four_keys if {
	document := json.patch(plan, [
		{"op": "replace", "path": "/vars/fra2/claims", "value": [1, bbr("0.0.0.0/0"), bbr("192.0.2.0/24")]},
		{"op": "remove", "path": "/watermark"},
		{"op": "add", "path": "/vars/xyz1", "value": {}},
	])
	count(denials(document)) > 5
	every denial in denials(document) {
		object.keys(denial) == {"code", "message", "pop", "prefix"}
	}
}
