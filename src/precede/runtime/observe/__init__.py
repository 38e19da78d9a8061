"""What an operator sees of a member: log lines, metrics, a status page for programs, traces.

In reading order: what is counted: `traffic`; what is read: `families`, `readings`, `process`; how it leaves:
`exposition`, `endpoint`, `json_lines`, `telemetry`; and `watch`, which connects them to one member.
"""
