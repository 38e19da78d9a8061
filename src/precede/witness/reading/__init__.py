"""From logs of any format to histories."""
