"""The few compiled loops. Each has a twin in plain Python in the tests."""
