package tidegate.guard_test

import data.tidegate.guard

# fra2 went from `before` claims to `now`.
shrunk(before, now) := json.patch(with_claims(array.slice(clients(before), 0, now)), [{
	"op": "add",
	"path": "/vars/fra2/changes/removed",
	"value": [claim.prefix | some claim in array.slice(clients(before), now, before)],
}])

test_a_selection_may_not_end_at_once if {
	said(shrunk(4, 0)) == {["empty_selection", "fra2", null]}
	said(shrunk(1, 0)) == {["empty_selection", "fra2", null]}
}

test_a_selection_that_was_empty_may_stay_so if {
	allowed(shrunk(0, 0))
	none := object.union(limits, {"empty_min_prefixes": 0})
	guard.allow with input as shrunk(0, 0) with data.limits as none
}

test_a_reviewed_limit_lets_a_pop_be_emptied if {
	raised := object.union(limits, {"empty_min_prefixes": 5})
	guard.allow with input as shrunk(4, 0) with data.limits as raised
}

test_a_selection_may_lose_as_much_as_the_limit if {
	allowed(shrunk(8, 4))
	allowed(shrunk(4, 2))
}

test_a_selection_may_not_lose_more if {
	said(shrunk(9, 4)) == {["shrunk_selection", "fra2", null]}
	said(shrunk(4, 1)) == {["shrunk_selection", "fra2", null]}
}

test_a_small_selection_may_halve if {
	allowed(shrunk(3, 1))
}

test_what_is_replaced_is_not_lost if {
	document := json.patch(with_claims(clients(4)), [
		{"op": "add", "path": "/vars/fra2/changes/added", "value": ["203.0.1.0/24", "203.0.2.0/24", "203.0.3.0/24"]},
		{
			"op": "add",
			"path": "/vars/fra2/changes/removed",
			"value": ["198.51.100.0/24", "198.51.101.0/24", "198.51.102.0/24"],
		},
	])
	allowed(document)
}

# As `shrunk`, with the first `count` of what is gone taken away on purpose.
withdrawn(before, now, number) := json.patch(shrunk(before, now), [{
	"op": "add",
	"path": "/vars/fra2/changes/withdrawn",
	"value": array.slice(shrunk(before, now).vars.fra2.changes.removed, 0, number),
}])

test_what_is_withdrawn_is_not_lost if {
	allowed(withdrawn(4, 0, 4))
	allowed(withdrawn(9, 4, 5))
	allowed(withdrawn(9, 3, 3))
}

test_what_is_lost_beside_it_is if {
	said(withdrawn(4, 0, 3)) == {["empty_selection", "fra2", null]}
	said(withdrawn(9, 2, 2)) == {["shrunk_selection", "fra2", null]}
}

test_windows_as_they_stand_do_not_hide_a_loss if {
	every document in [shrunk(4, 0), shrunk(4, 1)] {
		beside := json.patch(document, [
			{"op": "add", "path": "/vars/fra2/claims/-", "value": window("192.0.2.0/24")},
			{"op": "add", "path": "/vars/fra2/claims/-", "value": window("::/0")},
		])
		said(beside) == said(document)
		not allowed(beside)
	}
}
