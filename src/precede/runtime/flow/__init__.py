"""Flow: what an application may send, when it has to wait before it sends more, and who hears the news.

In reading order: `sending`, `arrival_feed`, `waiting_news`. The messages that wait for the application are in
`deliveries`.
"""
