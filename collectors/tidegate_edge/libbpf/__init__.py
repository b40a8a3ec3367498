"""BPF programs and maps by the system's libbpf: a host needs neither compiler nor kernel headers.

`library` binds its functions, `objects` loads programs, `iterators` attaches those that walk the kernel's tables,
`maps` and `descriptors` are the system calls.
"""
