"""What shows only over many runs: kills at any moment, whole nights. For tests, `make kills` and `make night`."""
