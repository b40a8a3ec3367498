"""What Tidegate runs on an edge host: the socket collector and the steering agent."""
