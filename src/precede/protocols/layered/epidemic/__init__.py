"""The epidemic dissemination: store, carry, forward (guidec2021, section III)."""
