"""Opens files safely: those that strangers made, and those that nobody else may read.

* `inputs`: regular files and archives of strangers, within limits
* `private`: files that only their owner can read

May import: core
"""
