"""Tables, figures and the site, made from tables on disk.

May import: measures, lake
"""
