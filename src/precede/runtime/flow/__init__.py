"""Flow: where packets go, what an application may send, when it has to wait, and who hears the news.

In reading order: `incoming`, `sending`, `arrival_feed`, `waiting_news`. Messages that wait for the application
are in `deliveries`.
"""
