"""steering.json in, a kernel that matches out.

In the order the data flows: `steering` (the file) -> `claims` (settings by prefix) -> `routes` (the plan: clones of
the host's routes, found by `table`) -> `kernel` (the netlink socket; `netlink` has the bytes) -> `report`. Beside
it, `backend` says which of the two ways into the kernel is taken, `generations` keeps what was applied on the disk
(`durable`: whole files; `boottime`: deadlines), and `algorithms` and `default` keep the host's default algorithm. All
but `steering`, `kernel`, `algorithms`, `default`, `generations`, `durable`, `boottime` and `turn` are pure.
"""
