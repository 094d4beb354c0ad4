"""The normal form behind `canonical`."""
