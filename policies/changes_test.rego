package tidegate.guard_test

test_an_account_that_fits_is_allowed if {
	allowed(json.patch(plan, [
		{"op": "add", "path": "/vars/fra2/changes/added/-", "value": "198.51.100.0/24"},
		{"op": "add", "path": "/vars/fra2/changes/removed/-", "value": "203.0.113.0/24"},
	]))
}

test_what_is_added_must_be_claimed if {
	said(changed("/vars/fra2/changes/added/-", "203.0.113.0/24")) == {["inconsistent_changes", "fra2", "203.0.113.0/24"]}
}

test_what_is_removed_must_not_be_claimed if {
	document := changed("/vars/fra2/changes/removed/-", "198.51.100.0/24")
	said(document) == {["inconsistent_changes", "fra2", "198.51.100.0/24"]}
}

test_a_prefix_is_listed_once if {
	twice := ["203.0.113.0/24", "203.0.113.0/24"]
	said(changed("/vars/fra2/changes/removed", twice)) == {["inconsistent_changes", "fra2", "203.0.113.0/24"]}
	again := ["198.51.100.0/24", "198.51.100.0/24"]
	said(changed("/vars/fra2/changes/added", again)) == {["inconsistent_changes", "fra2", "198.51.100.0/24"]}
}

test_windows_as_they_stand_are_no_change if {
	document := json.patch(with_claims([window("198.51.100.0/24")]), [{
		"op": "add",
		"path": "/vars/fra2/changes/removed/-",
		"value": "198.51.100.0/24",
	}])
	not "inconsistent_changes" in {denial.code | some denial in denials(document)}
}

test_a_window_is_not_said_to_be_added if {
	document := json.patch(with_claims([window("198.51.100.0/24")]), [{
		"op": "add",
		"path": "/vars/fra2/changes/added/-",
		"value": "198.51.100.0/24",
	}])
	["inconsistent_changes", "fra2", "198.51.100.0/24"] in said(document)
}

test_what_is_withdrawn_must_be_removed if {
	allowed(json.patch(plan, [
		{"op": "add", "path": "/vars/fra2/changes/removed/-", "value": "203.0.113.0/24"},
		{"op": "add", "path": "/vars/fra2/changes/withdrawn/-", "value": "203.0.113.0/24"},
	]))
	document := changed("/vars/fra2/changes/withdrawn/-", "203.0.113.0/24")
	said(document) == {["inconsistent_changes", "fra2", "203.0.113.0/24"]}
}

test_what_is_withdrawn_is_listed_once if {
	document := json.patch(plan, [
		{"op": "add", "path": "/vars/fra2/changes/removed/-", "value": "203.0.113.0/24"},
		{"op": "add", "path": "/vars/fra2/changes/withdrawn", "value": ["203.0.113.0/24", "203.0.113.0/24"]},
	])
	said(document) == {["inconsistent_changes", "fra2", "203.0.113.0/24"]}
}
