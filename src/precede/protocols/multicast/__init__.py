"""Causal multicast to any destination set: the node, and the rules in which PRS, RST and SES differ."""
