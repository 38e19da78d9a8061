"""`precede play`: a simulated world on a local page, to touch while it runs.

A session runs one scenario and seed twice, with the chosen protocol and without order, and gives both worlds
the same inputs: a message, a crash, a restart, a cut link, a mended one. Simulator and protocols are those of
every other run. A record (scenario, seed, inputs, end) gives the same event logs again, byte by byte.

In reading order: `record` (what is saved), `played_world` (the simulator with links that can be cut),
`baseline` (the same world without order), `judge`, `side` (one world, stepped), `places`, `frames` (what a page
is sent), `session`; `saving`, `lessons`; `game` (what a page may ask), `server`; `export` (without a server).
`worlds` has the lessons and their scenarios, `assets` the page.

May import: core, protocols, eventlog, traces, sim, witness, experiments, lake, report
"""
