"""The one client of served models: requests with retries, answers kept on disk, keys from the environment."""
