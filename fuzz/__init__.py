"""Property tests and coverage-guided fuzzing of everything that reads input from others: `make fuzz`."""
