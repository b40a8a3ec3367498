package tidegate.guard_test

import data.tidegate.guard

# Every key that the contracts require: all that the plan has, but for POP names and what claims say.
required_paths contains path if {
	walk(plan, [path, _])
	is_string(path[count(path) - 1])
	not "claims" in array.slice(path, 0, count(path) - 1)
	not path[count(path) - 2] in {"pops", "vars"}
}

required_paths contains [key] if some key in ["kind", "as_of", "watermark", "fleet", "vars"]

test_the_paths_are_those_of_the_contracts if {
	count(required_paths) == ((5 + 3) + (2 * 3)) + (2 * ((11 + 3) + 6))
}

test_no_key_may_be_missing if {
	every path in required_paths {
		document := json.remove(plan, [path])
		not allowed(document)
		some denial in denials(document)
		denial.code == "missing_input"
		contains(denial.message, sprintf("`%s`", [path[count(path) - 1]]))
	}
}

nullable := {"learn", "previous_generation"}

test_no_key_may_have_another_type if {
	every path in required_paths {
		every value in [null, true, {"a": 1}] {
			document := json.patch(plan, [{"op": "replace", "path": path, "value": value}])
			mistyped(document, path, value)
		}
	}
}

mistyped(document, _, _) if {
	not allowed(document)
	some denial in denials(document)
	denial.code in {"malformed_input", "missing_input"}
}

mistyped(_, path, value) if {
	value == null
	path[count(path) - 1] in nullable
}

test_no_limit_may_be_missing if {
	every key, _ in limits {
		partly := object.remove(limits, [key])
		not guard.allow with input as plan with data.limits as partly
		some denial in guard.denials with input as plan with data.limits as partly
		denial.code == "missing_input"
		denial.message == sprintf("`limits` lacks the key `%s`", [key])
	}
}

test_limits_may_not_be_missing_as_a_whole if {
	every nothing in [null, {}, [], "limits"] {
		not guard.allow with input as plan with data.limits as nothing
	}
}

test_a_limit_must_be_a_whole_number if {
	every key in object.keys(object.remove(limits, ["algorithms"])) {
		every value in ["100", -1, 1.5, null] {
			odd := object.union(limits, {key: value})
			not guard.allow with input as plan with data.limits as odd
			some denial in guard.denials with input as plan with data.limits as odd
			denial.code == "malformed_input"
		}
	}
}

test_no_pop_means_nothing_was_judged if {
	said(changed("/vars", {})) == {["missing_input", null, null]}
}

test_no_own_prefix_means_no_inventory if {
	document := json.patch(changed("/fleet/origins", []), [
		{"op": "replace", "path": "/vars/fra2/learn", "value": null},
		{"op": "replace", "path": "/vars/iad1/learn", "value": null},
		{"op": "replace", "path": "/fleet/pops/fra2/own_prefixes", "value": []},
		{"op": "replace", "path": "/fleet/pops/iad1/own_prefixes", "value": []},
	])
	said(document) == {["missing_input", null, null]}
}

test_no_algorithm_is_no_list if {
	empty := object.union(limits, {"algorithms": []})
	some denial in guard.denials with input as plan with data.limits as empty
	denial.code == "missing_input"
}
