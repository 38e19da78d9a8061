"""WAS: causal broadcast for mobile hosts in radio cells (Wilhelm, Arantes, Sens 2021), and its rival CK.

Stations on a wired tree flood messages to each other and number them for their cells, so radio packets carry no
order data. A host that changes cells is handed off in three phases, each station discards what its own hosts
have acknowledged, and hosts may join, leave, crash and recover. `papers/was2021/reading.md` lists where the
paper is wrong or silent (E1 to E18) and what this code does there.

In reading order: `packets`, `options`; the parts of a host: `uplink`, `downlink`, `acknowledgements`, `host`;
the parts of a station: `record`, `buffer`, `transmission`, `silence`, `registrations`, the handoff in
`previous_station` and `new_station`, `station`; `entry`; the rival `ck_packets`, `ck`.
"""
