"""Hardware functions that are not among STeP's: programs define them as users do theirs."""
