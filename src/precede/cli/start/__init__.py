"""Verbs for the first hour with Precede.

* `doctor`: what is installed here, what is missing or slow, and the line that mends it
* `installation`, `machine`: the checks of `doctor`: our package and its extras; the machine around them
* `explain`: what the code of an error means; `explanations` is the table of codes
* `completion`: a script that completes verbs and options in a shell
* `new`: a small example with its test, from `templates`
"""
