"""What is described: programs as graphs, their types and layouts, and the hardware they run on."""
