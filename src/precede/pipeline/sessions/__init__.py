"""The Spark session and what every job needs of it: `session`, `existing`, `shipping`, `pack`, `warm`, `java`,
`tasks`, `frames`.
"""
