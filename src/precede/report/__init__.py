"""Tables, figures and the site, made from the results in a lake.

Tables are written as Markdown, LaTeX, HTML and CSV; figures as SVG, PDF and PNG. The site is a folder of
static pages that open from a disk without a network. A run's page draws its messages in space and time from
packed data.

* `tables`, `axes`, `figures`: one table or figure in every format
* `units`: minutes and kilobytes instead of microseconds and bytes
* `packing`: columns of numbers as text in a page
* `run_data`, `map_data`: the data of a run's page: its log and its map
* `trace_data`: the numbers of a trace's page
* `shiviz`: a run's log for ShiViz
* `writing`: pages from templates
* `run_pages`, `sweep_pages`, `trace_pages`, `paper_pages`, `protocol_pages`, `emulation_pages`: one kind of
  page each
* `difference_pages`: the part of a sweep's page that compares its settings
* `site`: the whole site

May import: measures, lake
"""
