"""Analyses: facts about a Plan, which they never change."""
