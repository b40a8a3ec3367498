"""The role kafka_topics on a real broker: what it makes, shows, leaves alone and refuses."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from confluent_kafka.admin import AdminClient, ConfigResource

ROOT = Path(__file__).resolve().parents[1]
SMALL = {"cleanup.policy": "delete", "max.message.bytes": 1048588, "retention.ms": 3600000}


@pytest.fixture(scope="module")
def sasl(kafka, tmp_path_factory):
    """The brokers' address, and the file of properties that TLS and SASL take."""
    settings = kafka.settings("sasl_ssl")
    path = tmp_path_factory.mktemp("client") / "kafka.conf"
    path.touch(mode=0o600)
    path.write_text("# for the tests\n" + "".join(f"{key}={value}\n" for key, value in settings.items()))
    return [settings["bootstrap.servers"]], path


@pytest.fixture
def role(sasl, tmp_path):
    """Runs the role on a topic with variables over the small ones; returns the module's result."""
    brokers, client_config = sasl
    subprocess.run([ROOT / "playbooks/link-collection.sh"], check=True)

    def run(topic, *arguments, timeout_s=30, **variables):
        given = {
            "kafka_topics_brokers": brokers,
            "kafka_topics_client_config": str(client_config),
            "kafka_topics_partitions": 2,
            "kafka_topics_replication_factor": 1,
            "kafka_topics_config": SMALL,
            "kafka_topics_topics": [{"name": topic}],
            **variables,
        }
        play = {
            "name": "Topics",
            "hosts": "localhost",
            "gather_facts": False,
            "module_defaults": {"tidegate.edge.kafka_topic": {"timeout": timeout_s}},
            "roles": ["tidegate.edge.kafka_topics"],
        }
        (tmp_path / "play.yml").write_text(yaml.safe_dump([play]))
        ran = subprocess.run(
            [
                "ansible-playbook",
                "-i",
                "localhost,",
                "--diff",
                "play.yml",
                *arguments,
                "-e",
                json.dumps(given),
            ],
            cwd=tmp_path,
            env={
                **os.environ,
                "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "build/collections"),
                "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.default",
                "ANSIBLE_NOCOLOR": "1",
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        return ran.returncode, ran.stdout + ran.stderr

    return run


def changed(answer):
    code, output = answer
    assert code == 0, output
    return "changed=1" in output


def topic_of(kafka, name):
    """Partitions and settings, as the broker has them; None if there is no such topic."""
    admin = AdminClient(kafka.settings())
    topics = admin.list_topics(timeout=30).topics
    if name not in topics:
        return None
    (future,) = admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, name)]).values()
    return len(topics[name].partitions), {key: entry.value for key, entry in future.result(30).items()}


def test_a_topic_is_shown_then_made_then_left_alone(kafka, role):
    code, shown = role("roles.made", "--check")
    assert code == 0, shown
    assert "+partitions: 2" in shown
    assert "+retention.ms: 3600000" in shown
    assert topic_of(kafka, "roles.made") is None

    assert changed(role("roles.made"))
    partitions, settings = topic_of(kafka, "roles.made")
    assert partitions == 2
    assert (settings["retention.ms"], settings["max.message.bytes"]) == ("3600000", "1048588")

    assert not changed(role("roles.made"))


def test_partitions_are_added_and_named_settings_alone_are_changed(kafka, role):
    kafka.create_topic("roles.grown", 1, retention_ms="60000", segment_ms="77777")
    code, shown = role("roles.grown", "--check")
    assert code == 0, shown
    assert "-retention.ms: 60000" in shown
    assert "+retention.ms: 3600000" in shown
    assert topic_of(kafka, "roles.grown")[0] == 1

    assert changed(role("roles.grown"))
    partitions, settings = topic_of(kafka, "roles.grown")
    assert partitions == 2
    assert (settings["retention.ms"], settings["segment.ms"]) == ("3600000", "77777")


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"kafka_topics_partitions": 1}, "has 2 partitions, and Kafka can take none away"),
        ({"kafka_topics_replication_factor": 3}, "has 1 replicas of each partition"),
        ({"kafka_topics_brokers": ["127.0.0.1:1"], "timeout_s": 2}, "the brokers 127.0.0.1:1"),
    ],
)
def test_what_can_not_be_done_is_refused_and_changes_nothing(kafka, role, variables, told):
    if topic_of(kafka, "roles.refused") is None:
        kafka.create_topic("roles.refused", 2)
    before = topic_of(kafka, "roles.refused")
    code, output = role("roles.refused", **variables)
    assert code == 2
    assert told in output
    assert topic_of(kafka, "roles.refused") == before


def test_only_absent_deletes(kafka, role):
    kafka.create_topic("roles.deleted", 2)
    assert changed(role("roles.deleted", "--check", kafka_topics_state="absent"))
    assert topic_of(kafka, "roles.deleted") is not None
    assert changed(role("roles.deleted", kafka_topics_state="absent"))
    assert topic_of(kafka, "roles.deleted") is None
    assert not changed(role("roles.deleted", kafka_topics_state="absent"))


def test_secrets_that_others_may_read_are_refused_and_not_repeated(kafka, role, sasl, tmp_path):
    loose = tmp_path / "loose.conf"
    loose.write_text(sasl[1].read_text())
    loose.chmod(0o644)
    code, output = role("roles.loose", kafka_topics_client_config=str(loose))
    assert code == 2
    assert "holds a secret and is open to others: chmod 600" in output
    assert kafka.password not in output
