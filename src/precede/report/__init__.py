"""Tables, figures and the site, made from the results in a lake.

Tables are written as Markdown, LaTeX, HTML and CSV; figures as SVG, PDF and PNG. The site is a folder of static
pages that open from a disk without a network. A run's page draws its messages in space and time from packed
data.

In reading order: one table or figure in every format: `tables`, `axes`, `figures`, `screens`, `units`; the data
of pages: `packing`, `run_data`, `map_data`, `trace_data`, `shiviz`; `writing` makes pages from templates; one
kind of page each: `run_pages`, `sweep_pages` with `difference_pages`, `trace_pages`, `paper_pages`,
`protocol_pages`, `emulation_pages`, `audit_pages`; `site`; what runs now: `live`.

May import: measures, lake
"""
