"""Types, labels, seeds, errors and parameters: what every room shares."""
