"""The experiments of was2021.

points       the experiments of sections 5.2 and 5.3: buffers and failures
comparison   the experiments of section 5.1: WAS compared with CK
units        both as units of work
"""
