"""The broker of the laboratory is what the suites take it for."""

import socket

import pytest
from confluent_kafka import Consumer, Producer


def produce(settings, topic, value):
    """The error of its delivery, or None."""
    errors = []
    producer = Producer({"message.timeout.ms": 10_000, "log_level": 0, **settings})
    producer.produce(topic, value, on_delivery=lambda error, _message: errors.append(error))
    producer.flush(20)
    return errors[0]


def values(broker, topic, count):
    consumer = Consumer({**broker.settings(), "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found = []
    while len(found) < count:
        message = consumer.poll(30)
        assert message is not None
        found.append(message.value())
    consumer.close()
    return found


def test_every_listener_takes_its_own_clients(kafka):
    kafka.create_topic("lab.listeners")
    listeners = ("plaintext", "ssl", "sasl_ssl")
    for name in listeners:
        assert produce(kafka.settings(name), "lab.listeners", name.encode()) is None
    assert values(kafka, "lab.listeners", 3) == [name.encode() for name in listeners]


@pytest.mark.parametrize(
    ("listener", "wrong"),
    [
        ("sasl_ssl", {"sasl.password": "not this"}),
        ("ssl", {"ssl.certificate.location": "", "ssl.key.location": ""}),
    ],
)
def test_a_client_without_the_right_secret_delivers_nothing(kafka, listener, wrong):
    topic = f"lab.refused.{listener}"
    kafka.create_topic(topic)
    assert produce({**kafka.settings(listener), **wrong, "message.timeout.ms": 2000}, topic, b"x") is not None
    assert kafka.end_offsets(topic) == {0: 0}


def test_what_was_acknowledged_outlives_a_kill(new_broker):
    broker = new_broker()
    broker.create_topic("lab.killed", partitions=2)
    assert produce(broker.settings(), "lab.killed", b"kept") is None
    broker.kill()
    host, port = broker.bootstrap["plaintext"].split(":")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)))
    broker.start()
    assert sum(broker.end_offsets("lab.killed").values()) == 1
    assert values(broker, "lab.killed", 1) == [b"kept"]
    broker.close()
