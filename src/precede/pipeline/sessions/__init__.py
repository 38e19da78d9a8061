"""The Spark session and what every job needs of it: `session`, `existing`, `java`, `tasks`, `frames`."""
