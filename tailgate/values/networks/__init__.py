"""Types inet, cidr, macaddr and macaddr8."""
