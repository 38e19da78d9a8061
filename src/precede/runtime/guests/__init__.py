"""Guests of a total order: browsers that take part through a gateway, which they trust for the order alone.

A guest runs no total-order protocol. It is a member of a causal group of its own with the gateway, the *guest
group*. The gateway broadcasts each message of the total order there, in that order, and broadcasts what guests
say in the total order. Every payload carries its author's signature, which members and guests check: so the
gateway decides what guests see and in which order, but it writes in nobody's name.

In reading order: `signed_payloads`, what everybody uses in such a group; `guest_gateway`, the gateway's part.
"""
