"""One module per order, and the engines that run them over one history."""
