"""A generation whose BBR yields to another algorithm. Pure."""

from dataclasses import replace

from tidegate_edge.steer.steering import Steering


def is_bbr(name: str | None) -> bool:
    """Whether an algorithm is BBR, of any version."""
    return name is not None and name.startswith("bbr")


def without_bbr(steering: Steering, instead: str) -> Steering:
    """The same claims with `instead` wherever they name BBR, as the host's default too; all else stays."""
    default = steering.default_congestion_control
    return replace(
        steering,
        default_congestion_control=instead if is_bbr(default) else default,
        claims=tuple(
            replace(claim, congestion_control=instead) if is_bbr(claim.congestion_control) else claim
            for claim in steering.claims
        ),
    )
