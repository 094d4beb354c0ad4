"""Training: synthetic laws, the stream they arrive in, objectives and the loop."""
