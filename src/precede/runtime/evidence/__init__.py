"""Evidence of equivocation: a member that signs two different messages with one id leaves a proof.

A signature covers a header: the message's id, a nonce of its stream, the hash of the author's previous message,
and the hash of the rest. Two headers that contradict each other, with their signatures and the author's public
key, prove that the author signed both. Nobody else can make them. In reading order: `signatures`,
`headers`, `proofs`, `chain`, `history`, `files`.
"""
