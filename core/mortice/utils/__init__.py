"""Utilities around training: data loading, checkpointing."""
