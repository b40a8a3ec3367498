package tidegate.guard

# METADATA
# title: A claim starts with too large a congestion window
denials contains {"code": "initcwnd", "pop": pop, "prefix": claim.prefix, "message": message} if {
	some pop, vars in input.vars
	some claim in vars.claims
	claim.initcwnd > data.limits.initcwnd_max_segments
	message := sprintf("initcwnd of %v is above %d segments", [claim.initcwnd, data.limits.initcwnd_max_segments])
}

# METADATA
# title: A POP may learn too large a congestion window
denials contains {"code": "initcwnd", "pop": pop, "prefix": null, "message": message} if {
	some pop, vars in input.vars
	vars.learn.initcwnd_max > data.limits.initcwnd_max_segments
	message := sprintf(
		"learned initcwnd may reach %v, above %d segments",
		[vars.learn.initcwnd_max, data.limits.initcwnd_max_segments],
	)
}

# METADATA
# title: The bounds of a learned congestion window are the wrong way round
denials contains {"code": "initcwnd", "pop": pop, "prefix": null, "message": message} if {
	some pop, vars in input.vars
	vars.learn.initcwnd_min > vars.learn.initcwnd_max
	message := sprintf(
		"learned initcwnd is at least %v and at most %v segments",
		[vars.learn.initcwnd_min, vars.learn.initcwnd_max],
	)
}

# METADATA
# title: A POP offers the destinations of learning too large a receive window
denials contains {"code": "initrwnd", "pop": pop, "prefix": null, "message": message} if {
	some pop, vars in input.vars
	vars.learn.initrwnd > data.limits.initrwnd_max_segments
	message := sprintf(
		"initrwnd of %v, offered where windows are learned, is above %d segments",
		[vars.learn.initrwnd, data.limits.initrwnd_max_segments],
	)
}

# METADATA
# title: A claim starts with too large a receive window
denials contains {"code": "initrwnd", "pop": pop, "prefix": claim.prefix, "message": message} if {
	some pop, vars in input.vars
	some claim in vars.claims
	claim.initrwnd > data.limits.initrwnd_max_segments
	message := sprintf("initrwnd of %v is above %d segments", [claim.initrwnd, data.limits.initrwnd_max_segments])
}
