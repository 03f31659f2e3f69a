"""Re-planning: what queries share follows the traffic while a set runs."""
