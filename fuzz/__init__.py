"""Property tests and coverage-guided fuzzing of everything that reads what somebody else wrote: `make fuzz`."""
