#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Makes a Kafka topic what it should be; whatever could lose rows is refused or has to be asked for."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: kafka_topic
short_description: Make a Kafka topic with its partitions, replicas and settings
version_added: "0.1.0"
description:
  - Creates a topic, adds partitions to it, and sets what is named in O(config); other settings stay as they are.
  - Never takes away partitions and never moves replicas. Where that would be needed it fails and changes nothing.
  - Removes a topic, and all that stands in it, only if O(state=absent) is asked for.
options:
  name:
    description: The topic.
    type: str
    required: true
  brokers:
    description: Some of the cluster's brokers, each as address and port.
    type: list
    elements: str
    required: true
  client_config:
    description:
      - File of librdkafka's properties, one C(key=value) a line, for TLS and SASL.
      - Secrets stand there and not in a task. A file that holds a password or a key, and that others may read, is
        refused.
    type: path
  partitions:
    description: How many there should be. Keys move between partitions when some are added.
    type: int
    default: 1
  replication_factor:
    description: Replicas of each partition, of a topic that is created.
    type: int
    default: 1
  config:
    description: Settings of the topic, by the broker's names, for example C(retention.ms).
    type: dict
    default: {}
  timeout:
    description: Seconds that an answer of the cluster may take.
    type: int
    default: 30
  state:
    description: Whether there is such a topic.
    type: str
    choices: [present, absent]
    default: present
requirements:
  - confluent-kafka >= 2.12 for the Python that runs the module
attributes:
  check_mode:
    support: full
    description: The cluster is read and nothing is changed.
  diff_mode:
    support: full
    description: Partitions, replicas and the settings of O(config), before and after.
author:
  - The Tidegate authors (@tidegate)
"""

EXAMPLES = r"""
- name: Make the topic of socket samples
  tidegate.edge.kafka_topic:
    name: tidegate.sockets
    brokers: ["192.0.2.10:9093", "192.0.2.11:9093", "192.0.2.12:9093"]
    client_config: /etc/tidegate/kafka.conf
    partitions: 48
    replication_factor: 3
    config:
      retention.ms: 259200000
      min.insync.replicas: 2
  delegate_to: localhost
"""

RETURN = r"""
before:
  description: The topic as it was; null if there was none.
  type: dict
  returned: success
  sample: {partitions: 12, replication_factor: 3, config: {retention.ms: "259200000"}}
after:
  description: The topic as it is, or in check mode would be; null if there is none.
  type: dict
  returned: success
"""

import traceback
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule, missing_required_lib

try:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import (
        AdminClient,
        AlterConfigOpType,
        ConfigEntry,
        ConfigResource,
        NewPartitions,
        NewTopic,
    )

    MISSING = None
except ImportError:
    MISSING = traceback.format_exc()

SECRET = ("password", "secret", "key.pem", "oauthbearer.config", "sasl.jaas")
READABLE_BY_OTHERS = 0o077

Topic = dict[str, Any]


def read_properties(path: Path) -> dict[str, str]:
    """The properties of a file, one `key=value` a line; `#` begins a comment line.

    Raises:
        ValueError: a line is none, or the file holds a secret and others may read it.
        OSError: it can't be read.
    """
    properties = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise ValueError(f"{path}:{number}: not `key=value`")  # its text may be a secret
        properties[key.strip()] = value.strip()
    if any(mark in key for mark in SECRET for key in properties) and path.stat().st_mode & READABLE_BY_OTHERS:
        raise ValueError(f"{path} holds a secret and is open to others: chmod 600")
    return properties


def wanted_topic(before: Topic | None, given: dict[str, Any]) -> Topic | None:
    """What the topic should be.

    Args:
        before: as it is, or None.
        given: the module's parameters.

    Raises:
        ValueError: that would take partitions away or move replicas.
    """
    if given["state"] == "absent":
        return None
    settings = {key: setting(value) for key, value in given["config"].items()}
    wanted = {
        "partitions": given["partitions"],
        "replication_factor": given["replication_factor"],
        "config": settings,
    }
    if before is None:
        return wanted
    if before["partitions"] > wanted["partitions"]:
        raise ValueError(
            f"`{given['name']}` has {before['partitions']} partitions, and Kafka can take none away: "
            f"ask for {before['partitions']} or more, or for another topic"
        )
    if before["replication_factor"] != wanted["replication_factor"]:
        raise ValueError(
            f"`{given['name']}` has {before['replication_factor']} replicas of each partition: "
            f"move them by kafka-reassign-partitions, or ask for {before['replication_factor']}"
        )
    return {**wanted, "config": {**before["config"], **settings}}


def setting(value: Any) -> str:  # noqa: ANN401 - YAML's
    """A setting's value as the broker writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def lines(name: str, topic: Topic | None) -> str:
    """A topic as Ansible shows it in a diff."""
    if topic is None:
        return ""
    size = [f"{key}: {topic[key]}" for key in ("partitions", "replication_factor")]
    settings = [f"{key}: {value}" for key, value in sorted(topic["config"].items())]
    return "".join(f"{line}\n" for line in (name, *size, *settings))


class Cluster:
    """What is asked of a cluster, and waited for.

    Args:
        properties: librdkafka's.
        timeout: seconds that an answer may take.
    """

    def __init__(self, properties: dict[str, str], timeout: int) -> None:
        # Its log would stand between Ansible and the module's answer.
        self._admin = AdminClient({**properties, "log_level": "0"})
        self._timeout = timeout

    def read(self, name: str, settings: list[str]) -> Topic | None:
        """The topic with these of its settings, or None."""
        # Without a name: asking for one can create it where the broker is configured to.
        topics = self._admin.list_topics(timeout=self._timeout).topics
        if name not in topics:
            return None
        partitions = topics[name].partitions
        resource = ConfigResource(ConfigResource.Type.TOPIC, name)
        entries = self._answer(self._admin.describe_configs([resource], request_timeout=self._timeout))
        return {
            "partitions": len(partitions),
            "replication_factor": len(partitions[0].replicas),
            "config": {key: entries[key].value for key in settings if key in entries},
        }

    def change(self, name: str, before: Topic | None, after: Topic | None) -> None:
        """Make the topic `after` of `before`."""
        if after is None:
            self._answer(self._admin.delete_topics([name], operation_timeout=self._timeout))
        elif before is None:
            new = NewTopic(name, after["partitions"], after["replication_factor"], config=after["config"])
            self._answer(self._admin.create_topics([new], operation_timeout=self._timeout))
        else:
            self._set(name, {k: v for k, v in after["config"].items() if before["config"].get(k) != v})
            if before["partitions"] != after["partitions"]:
                more = NewPartitions(name, after["partitions"])
                self._answer(self._admin.create_partitions([more], operation_timeout=self._timeout))

    def _set(self, name: str, settings: dict[str, str]) -> None:
        if not settings:
            return
        entries = [
            ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
            for key, value in settings.items()
        ]
        resource = ConfigResource(ConfigResource.Type.TOPIC, name, incremental_configs=entries)
        self._answer(self._admin.incremental_alter_configs([resource], request_timeout=self._timeout))

    def _answer(self, asked: dict[Any, Any]) -> Any:  # noqa: ANN401 - of whatever was asked
        (future,) = asked.values()
        return future.result(self._timeout)


def main() -> None:
    """Read the topic, and make it what it should be unless it is."""
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "brokers": {"type": "list", "elements": "str", "required": True},
            "client_config": {"type": "path"},
            "partitions": {"type": "int", "default": 1},
            "replication_factor": {"type": "int", "default": 1},
            "config": {"type": "dict", "default": {}},
            "timeout": {"type": "int", "default": 30},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
        supports_check_mode=True,
    )
    if MISSING:
        module.fail_json(msg=missing_required_lib("confluent-kafka"), exception=MISSING)
    given = module.params
    name = given["name"]
    try:
        properties = read_properties(Path(given["client_config"])) if given["client_config"] else {}
        cluster = Cluster({**properties, "bootstrap.servers": ",".join(given["brokers"])}, given["timeout"])
        before = cluster.read(name, list(given["config"]))
        after = wanted_topic(before, given)
        changed = before != after
        if changed and not module.check_mode:
            cluster.change(name, before, after)
    except (OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    except KafkaException as error:
        module.fail_json(msg=f"the brokers {', '.join(given['brokers'])}: {error.args[0].str()}")
    diff = {
        "before": lines(name, before),
        "after": lines(name, after),
        "before_header": "topic",
        "after_header": "topic",
    }
    module.exit_json(changed=changed, before=before, after=after, diff=diff)


if __name__ == "__main__":
    main()
