"""Commands that check: a log's order, a paper's published numbers.

verify      `precede verify`
measure     `precede measure`
follow      `precede verify --follow`
reproduce   `precede reproduce`
exhibits    writes the tables and figures of a reproduction
"""
