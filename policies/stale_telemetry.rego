package tidegate.guard

# METADATA
# title: A plan was made from telemetry that is too old, or from the future
# description: Only plans are judged by age; variables that are left alone stay valid.
denials contains {"code": "stale_telemetry", "pop": null, "prefix": null, "message": message} if {
	input.kind == "plan"
	_is_time(input.as_of)
	_is_time(input.watermark)
	not _is_fresh
	message := sprintf(
		"the last closed window ended at %s, which is not within the %v s before %s",
		[input.watermark, data.limits.telemetry_max_age_seconds, input.as_of],
	)
}

_is_fresh if {
	age_ns := time.parse_rfc3339_ns(input.as_of) - time.parse_rfc3339_ns(input.watermark)
	age_ns >= 0
	age_ns <= data.limits.telemetry_max_age_seconds * 1000000000
}
