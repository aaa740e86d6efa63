"""Templates for arrays of several dimensions."""
