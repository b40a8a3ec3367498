"""`tidegate test`: the `test` blocks of policies, run and reported."""
