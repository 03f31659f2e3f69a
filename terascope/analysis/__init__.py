"""Facts about a Plan: they tell, and never change it."""
