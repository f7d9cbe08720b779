"""Hardware of a program in SystemVerilog, with a module for each kind of operator.

The modules implement the timing of operators a second time, independently of ``run``. A comparison
of the two can find an error in either.
"""
