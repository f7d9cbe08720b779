"""Hardware of a program: SystemVerilog modules, one a kind of operator, written by hand.

The modules implement the operators' timing a second time, independently of their ``run``, so that a
comparison of the two can find an error in either.
"""
