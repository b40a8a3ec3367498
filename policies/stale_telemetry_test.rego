package tidegate.guard_test

stale := {["stale_telemetry", null, null]}

test_telemetry_may_be_as_old_as_the_limit if {
	every watermark in ["2026-11-20T05:00:00Z", "2026-11-20T06:00:00Z"] {
		allowed(changed("/watermark", watermark))
	}
}

test_older_telemetry_is_denied if {
	said(changed("/watermark", "2026-11-20T04:59:59Z")) == stale
}

test_telemetry_from_the_future_is_denied if {
	said(changed("/watermark", "2026-11-20T06:00:01Z")) == stale
}

test_variables_do_not_age if {
	every watermark in ["2020-01-01T00:00:00Z", "never"] {
		allowed(json.patch(plan, [
			{"op": "replace", "path": "/kind", "value": "vars"},
			{"op": "replace", "path": "/watermark", "value": watermark},
		]))
	}
}
