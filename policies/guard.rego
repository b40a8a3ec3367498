# METADATA
# title: The guard
# description: |
#   Judges the variables of every POP before they are applied, and again before they are rolled out.
#   Every file adds to `denials`; each is {code, pop, prefix, message}, `pop` and `prefix` null where there is not
#   just one. A rule denies what is not shown to be good (`not good(value)`), so that a value it cannot read is denied.
# scope: package
package tidegate.guard

# METADATA
# title: Nothing speaks against the input, and nothing was missing from it
# entrypoint: true
default allow := false

allow if {
	input.kind in {"plan", "vars"}
	count(denials) == 0
}
