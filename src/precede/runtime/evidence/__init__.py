"""Evidence of equivocation: a member that signs two different messages with one id leaves a proof.

A signature covers a header: the message's id, a nonce of its stream, the hash of the author's previous message,
and the hash of the rest. Two headers that contradict each other, with their signatures and the author's public
key, prove that the author signed both. Nobody else can make them.

Modules in reading order:
  headers   what a signature covers
  proofs    two headers that contradict each other, checked with nothing but the author's key
  chain     the links of this member's own messages, which survive a restart
  history   the latest headers of each author, in which contradictions are noticed
  files     evidence beside the event log
"""
