"""How results show themselves: the parts of a sheet, and its layout as text and as HTML."""
