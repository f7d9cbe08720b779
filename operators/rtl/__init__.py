"""Hardware of a program: SystemVerilog modules, one a kind of operator, written by hand.

The modules say a second time what takes how long. They know nothing of what the operators' ``run``
does, so that a comparison of the two can find either wrong.
"""
