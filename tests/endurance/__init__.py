"""What only shows over many runs: kills at any moment, whole nights. Used by tests, `make kills` and `make night`."""
