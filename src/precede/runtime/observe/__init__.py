"""What an operator sees of a member: log lines, metrics, a status page for programs, traces.

In reading order: what is counted: `traffic`; what is read: `families`, `readings`, `process`; how it leaves:
`exposition`, `endpoint`, `json_lines`, `telemetry`; `watch` connects them to one
member, `overview` puts several members side by side.
"""
