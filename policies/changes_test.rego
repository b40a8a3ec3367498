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
