"""Loopback servers that speak the wire protocols of model services, for tests, benchmarks and trials by hand."""
