"""The Spark session, the Java it needs, and tasks."""
