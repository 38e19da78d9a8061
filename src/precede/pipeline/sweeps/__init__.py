"""Many runs: simulated, judged, measured, compared."""
