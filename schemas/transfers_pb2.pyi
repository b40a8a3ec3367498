from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class TransferRow(_message.Message):
    __slots__ = ("schema_version", "finished_at_ns", "pop", "host", "traffic_class", "remote_address", "remote_prefix_length", "local_port", "connection", "connection_requests", "status", "bytes_sent", "duration_us", "congestion_control", "rtt_us", "rttvar_us", "snd_cwnd", "rcv_space")
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    FINISHED_AT_NS_FIELD_NUMBER: _ClassVar[int]
    POP_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    TRAFFIC_CLASS_FIELD_NUMBER: _ClassVar[int]
    REMOTE_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    REMOTE_PREFIX_LENGTH_FIELD_NUMBER: _ClassVar[int]
    LOCAL_PORT_FIELD_NUMBER: _ClassVar[int]
    CONNECTION_FIELD_NUMBER: _ClassVar[int]
    CONNECTION_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    BYTES_SENT_FIELD_NUMBER: _ClassVar[int]
    DURATION_US_FIELD_NUMBER: _ClassVar[int]
    CONGESTION_CONTROL_FIELD_NUMBER: _ClassVar[int]
    RTT_US_FIELD_NUMBER: _ClassVar[int]
    RTTVAR_US_FIELD_NUMBER: _ClassVar[int]
    SND_CWND_FIELD_NUMBER: _ClassVar[int]
    RCV_SPACE_FIELD_NUMBER: _ClassVar[int]
    schema_version: int
    finished_at_ns: int
    pop: bytes
    host: bytes
    traffic_class: int
    remote_address: bytes
    remote_prefix_length: int
    local_port: int
    connection: int
    connection_requests: int
    status: int
    bytes_sent: int
    duration_us: int
    congestion_control: bytes
    rtt_us: int
    rttvar_us: int
    snd_cwnd: int
    rcv_space: int
    def __init__(self, schema_version: _Optional[int] = ..., finished_at_ns: _Optional[int] = ..., pop: _Optional[bytes] = ..., host: _Optional[bytes] = ..., traffic_class: _Optional[int] = ..., remote_address: _Optional[bytes] = ..., remote_prefix_length: _Optional[int] = ..., local_port: _Optional[int] = ..., connection: _Optional[int] = ..., connection_requests: _Optional[int] = ..., status: _Optional[int] = ..., bytes_sent: _Optional[int] = ..., duration_us: _Optional[int] = ..., congestion_control: _Optional[bytes] = ..., rtt_us: _Optional[int] = ..., rttvar_us: _Optional[int] = ..., snd_cwnd: _Optional[int] = ..., rcv_space: _Optional[int] = ...) -> None: ...
