"""Error models: how errors grow with the value, the noise floor, and the digits of written numbers."""
