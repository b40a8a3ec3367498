"""steering.json in, a kernel that matches out: the pure steps and their two ends."""
