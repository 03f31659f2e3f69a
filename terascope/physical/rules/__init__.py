"""Rules over the draft of a Job."""
