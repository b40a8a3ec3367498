"""The contracts between rooms; each distribution carries them as a package of its own."""
