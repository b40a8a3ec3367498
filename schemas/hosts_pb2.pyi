from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class HostRow(_message.Message):
    __slots__ = ("schema_version", "observed_at_ns", "pop", "host", "observed_us", "measured", "cpus", "cpu_stalled_us", "cpu_stalled_avg10", "cpu_stalled_avg60", "cpu_stalled_avg300", "cpu_time_us", "idle_us", "steal_us", "irq_us", "softirq_us", "run_delay_us")
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    OBSERVED_AT_NS_FIELD_NUMBER: _ClassVar[int]
    POP_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    OBSERVED_US_FIELD_NUMBER: _ClassVar[int]
    MEASURED_FIELD_NUMBER: _ClassVar[int]
    CPUS_FIELD_NUMBER: _ClassVar[int]
    CPU_STALLED_US_FIELD_NUMBER: _ClassVar[int]
    CPU_STALLED_AVG10_FIELD_NUMBER: _ClassVar[int]
    CPU_STALLED_AVG60_FIELD_NUMBER: _ClassVar[int]
    CPU_STALLED_AVG300_FIELD_NUMBER: _ClassVar[int]
    CPU_TIME_US_FIELD_NUMBER: _ClassVar[int]
    IDLE_US_FIELD_NUMBER: _ClassVar[int]
    STEAL_US_FIELD_NUMBER: _ClassVar[int]
    IRQ_US_FIELD_NUMBER: _ClassVar[int]
    SOFTIRQ_US_FIELD_NUMBER: _ClassVar[int]
    RUN_DELAY_US_FIELD_NUMBER: _ClassVar[int]
    schema_version: int
    observed_at_ns: int
    pop: bytes
    host: bytes
    observed_us: int
    measured: int
    cpus: int
    cpu_stalled_us: int
    cpu_stalled_avg10: int
    cpu_stalled_avg60: int
    cpu_stalled_avg300: int
    cpu_time_us: int
    idle_us: int
    steal_us: int
    irq_us: int
    softirq_us: int
    run_delay_us: int
    def __init__(self, schema_version: _Optional[int] = ..., observed_at_ns: _Optional[int] = ..., pop: _Optional[bytes] = ..., host: _Optional[bytes] = ..., observed_us: _Optional[int] = ..., measured: _Optional[int] = ..., cpus: _Optional[int] = ..., cpu_stalled_us: _Optional[int] = ..., cpu_stalled_avg10: _Optional[int] = ..., cpu_stalled_avg60: _Optional[int] = ..., cpu_stalled_avg300: _Optional[int] = ..., cpu_time_us: _Optional[int] = ..., idle_us: _Optional[int] = ..., steal_us: _Optional[int] = ..., irq_us: _Optional[int] = ..., softirq_us: _Optional[int] = ..., run_delay_us: _Optional[int] = ...) -> None: ...
