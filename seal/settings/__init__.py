"""Settings: params.yaml as typed, range-checked values, and the JSON Schema that editors read."""
