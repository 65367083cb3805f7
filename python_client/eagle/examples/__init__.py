"""Programs to start from; each runs with ``python -m eagle.examples.NAME``."""
