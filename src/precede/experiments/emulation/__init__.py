"""Real nodes under a scenario: the plan they play, and how the outcome compares with a simulation."""
