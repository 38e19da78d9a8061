"""What a seed draws: one module per family of protocols."""
