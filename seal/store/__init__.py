"""Artifacts on disk: schemas, byte-stable Parquet, contracts."""
