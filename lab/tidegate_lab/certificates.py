"""An authority and two certificates that it signed, made by openssl for one run, in the PEM form that Kafka reads."""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_EC: Final = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")


@dataclass(frozen=True, slots=True)
class Certificates:
    """PEM files; those of the two ends hold key, certificate and nothing else."""

    authority: Path
    server: Path
    client: Path


def make_certificates(directory: Path, address: str) -> Certificates:
    """Make them in a new directory.

    Args:
        directory: created, for its owner only.
        address: the server's, as the certificate's subject.

    Raises:
        subprocess.CalledProcessError: openssl failed.
    """
    directory.mkdir(mode=0o700)
    made = Certificates(*(directory / f"{name}.pem" for name in ("authority", "server", "client")))
    key = directory / "authority.key"
    _openssl(
        "req", "-x509", *_EC, "-subj", "/CN=laboratory", "-keyout", str(key), "-out", str(made.authority)
    )
    for path, subject in (
        (made.server, f"subjectAltName=IP:{address}"),
        (made.client, "subjectAltName=DNS:edge"),
    ):
        certificate, own = path.with_suffix(".crt"), path.with_suffix(".key")
        signed_by = ("-CA", str(made.authority), "-CAkey", str(key))
        _openssl(
            "req",
            "-x509",
            *_EC,
            *signed_by,
            "-subj",
            f"/CN={path.stem}",
            "-addext",
            subject,
            "-keyout",
            str(own),
            "-out",
            str(certificate),
        )
        path.write_text(own.read_text() + certificate.read_text())
    return made


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)
