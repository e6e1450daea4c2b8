"""The Ajax side: runs Ajax's DreamerV3 inside the pinned Ajax environment."""
