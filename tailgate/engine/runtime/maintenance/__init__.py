"""Work between ticks: the Delta tables follow the log, defective views stop, old dead letters go."""
